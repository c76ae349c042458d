"""Words and letters by which languages are told from one another: the short words that every text of one is full of.

A word may stand under several languages; it then counts for each of them, and for each less.
"""

from __future__ import annotations

NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de":
    "German", "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian", "eu": "Basque", "fa": "Persian",
    "fi": "Finnish", "fr": "French", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian or Serbian", "hu": "Hungarian",
    "hy": "Armenian", "id": "Indonesian or Malay", "it": "Italian", "ja": "Japanese", "ka": "Georgian", "ko":
    "Korean", "lt": "Lithuanian", "lv": "Latvian", "nl": "Dutch", "no": "Norwegian", "pl": "Polish", "pt":
    "Portuguese", "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sl": "Slovene", "sr": "Serbian", "sv":
    "Swedish", "ta": "Tamil", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian", "vi": "Vietnamese", "zh": "Chinese",
    "unknown": "not told",
}  # fmt: skip

# Scripts that settle the language by themselves: first and last letter, language.
SCRIPTS = (
    ("Ͱ", "Ͽ", "el"), ("Ա", "֏", "hy"), ("א", "ת", "he"), ("ء", "ۿ", "ar"), ("ऄ", "ॿ", "hi"), ("অ", "৾", "bn"),
    ("அ", "௺", "ta"), ("ก", "๛", "th"), ("Ⴀ", "ჿ", "ka"), ("ぁ", "ヿ", "ja"), ("가", "힣", "ko"),
    ("一", "鿿", "zh"),
)  # fmt: skip

WORDS = {
    "en": "the of and to in is for that with on are this be as by it from or an which at was not have has can its you "
    "were their will also been but these they into more than between used using how what does",
    "de": "der die das und in den von zu ist mit für des dem auf eine ein im nicht werden sich auch als an aus wird "
    "bei oder einer eines nach wie sind durch zur zum über es einem einen kann diese dieser um vom am ihre beim "
    "unter",
    "fr": "le la les de des du et en un une est pour dans que qui sur par au avec pas ce il sont plus ou cette aux se "
    "son ses ne ces être nous vous leur mais ont comme entre peut été sans chez dont elle nos",
    "es": "el la los las de del y en un una es para que por con no se al su como más este esta o son lo sus pero ha "
    "entre sin sobre también puede ser desde muy cuando hay donde estos",
    "it": "il lo la i gli le di del della dei delle e in un una è per che con non da al alla si come più sono nel "
    "nella dal su o anche questo questa se dalla tra degli può essere ai sul ha ma",
    "pt": "o a os as de do da dos das e em um uma é para que por com não se no na nos nas ao como mais ou são pelo "
    "pela este esta seu sua também pode ser foi mas entre sem à você",
    "ca": "el la els les de del dels i en un una és per que amb no es al a als com més aquest aquesta o són seu seva "
    "també pot ser però entre sense fins perquè des hi ha",
    "ro": "și în de la cu pe un o este pentru care din nu sau sunt mai ca prin să se fi al ale ce au a fost după lui "
    "către acest această între poate",
    "nl": "de het een van en in is voor met op te zijn dat die aan door niet worden om als ook bij wordt of uit naar "
    "kan deze tot over dit er maar heeft hij ze je kunnen",
    "sv": "och i att det som en på är av för med den till ett inte om har de kan från vid eller efter men så också "
    "sin detta han vara mot alla under mellan denna",
    "da": "og i at det som en på er af for med den til et ikke om har de kan fra ved eller der efter men også sin "
    "dette han være mod under mellem denne hvor blev bliver",
    "no": "og i å det som en på er av for med den til et ikke om har de kan fra ved eller etter men også sin dette "
    "han være mot under mellom denne hvor ble blir",
    "fi": "ja on ei että se oli ovat myös kuin mutta tai sekä joka jotka hän voi sen ole tämä mukaan kanssa niin jos "
    "kun ne vain jossa jonka ettei tällä tietoa sivusto sivustolla",
    "et": "ja on ei et see oli ka kui aga või mis kes ning tema võib selle oma seda ole mida nii pole siis vaid üle "
    "kuid saab välja nende",
    "hu": "a az és hogy nem is egy van ez volt meg csak vagy mint de azt már még ki el lehet amely mely ezt minden "
    "után között által való szerint számára egyszerű",
    "pl": "i w z na do nie się jest to że o jak od za po dla przez są oraz lub tego ten może być tym które który "
    "która także ale jego jej ich pod można",
    "cs": "a v na se je z do že s to i o pro ve k po od jako by jsou za ze při nebo které který která není však také "
    "jeho tak být může lze ale pomocí",
    "sk": "a v na sa je z do že s to i o pre vo k po od ako by sú za zo pri alebo ktoré ktorý ktorá nie však aj jeho "
    "tak byť môže ale pomocou",
    "sl": "in v na se je z za da ki so s pa o po do kot tudi ali ne od pri bi lahko ter ni iz vse med sta kako tega",
    "hr": "i u na se je za da su s od o koji koja koje kao iz ili po nije što ne do bi a može te kako ima sa ovaj",
    "lt": "ir yra į kad su iš tai kaip ar bet o ne buvo dėl per taip jo savo po pagal nuo turi apie arba gali prie "
    "kurie",
    "lv": "un ir ar no uz ka par tas kā vai ne bet pēc tā arī pie bija lai kas to šis kuri var tiek gan gada",
    "tr": "ve bir bu için ile da de olarak olan gibi daha çok en ne ya sonra kadar ancak ise değil ki her veya "
    "tarafından olduğu içinde",
    "id": "dan yang di untuk dari dengan ini dalam pada adalah tidak itu ke oleh atau juga sebagai akan dapat telah "
    "secara bisa tersebut lebih",
    "vi": "và của là có cho được các một trong với những không này người để khi đã từ về cũng như bạn",
    "eu": "eta da ez bat du dira edo ere izan baina hau den dute ditu dela bere hori egin beste egiten duen baten "
    "erabiliz",
    "ru": "и в на не с что по для от из к как это о за или при до его также но они быть может был все которые а вы "
    "том эта является",
    "uk": "і в на не з що по для від із до як це за або при його також але та у є бути може був які ви через ця",
    "bg": "и в на не с че за от да се е са до като или при по това също но може които със към след между тази",
    "sr": "и у на се је за да су са од о који која које као из или по није што не до би а може те како",
    "ar": "في من على إلى أن التي الذي هذا هذه مع عن ما لا كان",
    "fa": "و در به از که این را با است برای آن یک تا می های",
}  # fmt: skip

# The last four letters of many words, where short texts have few short words; each counts like half a word.
ENDINGS = {
    "fi": "inen isen iset ista istä issa issä ossa assa ässä ella ellä alla ällä eiden iden tuja sten mien ksen ksia "
    "ttaa tään taan minen aari uden uuden yden kset otta ilta iltä ille lle ssaan kkaa nnin tteet teet ivat "
    "ivut",
    "de": "keit heit lich ungen ngen tung rung dung isch sche schen chaft chaften gung ierung chte icht buch stik "
    "lung sung kung nung hung ichte icher",
    "hu": "ások ések okat eket nak nek ához éhez ából éből ságok",
    "tr": "ları leri ında inde ması mesi dır dir nın nin masi",
    "et": "mine mise mist dest tele ates stus duse tuse",
}  # fmt: skip

# Letters that few languages have; each counts like half a word.
LETTERS = {
    "ß": "de", "ñ": "es", "ã": "pt", "õ": "pt et", "ø": "da no", "æ": "da no", "å": "sv da no", "ő": "hu",
    "ű": "hu", "ą": "pl lt", "ę": "pl lt", "ł": "pl", "ż": "pl", "ś": "pl", "ě": "cs", "ř": "cs", "ů": "cs",
    "ľ": "sk", "ĺ": "sk", "ŕ": "sk", "ô": "sk fr pt", "ğ": "tr", "ı": "tr", "ş": "tr", "ț": "ro", "ș": "ro",
    "ţ": "ro", "ă": "ro vi", "ļ": "lv", "ņ": "lv", "ķ": "lv", "ģ": "lv", "ā": "lv", "ė": "lt", "į": "lt", "ų": "lt",
    "ū": "lt lv", "đ": "hr vi", "ć": "hr pl", "ơ": "vi", "ư": "vi", "ạ": "vi", "ế": "vi", "ŀ": "ca", "ï": "ca",
    "ъ": "bg ru", "ы": "ru", "э": "ru", "ё": "ru", "і": "uk", "ї": "uk", "є": "uk", "ґ": "uk", "ђ": "sr", "ј": "sr",
    "љ": "sr", "њ": "sr", "ћ": "sr", "џ": "sr", "پ": "fa", "چ": "fa", "ژ": "fa", "گ": "fa", "ی": "fa", "ک": "fa",
}  # fmt: skip

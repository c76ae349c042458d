"""Languages of texts, on sentences of our own and on the sample data."""

from __future__ import annotations

import pytest

from labelwood.arrays.texts import Texts
from labelwood.data import read
from labelwood.data.language_words import ENDINGS, LETTERS, NAMES, SCRIPTS, WORDS
from labelwood.data.languages import language_of, shares
from labelwood.quickstart import quickstart_path

SENTENCES = {
    "en": "The library has books that are used by the whole town, and it is open on Sundays.",
    "de": "Die Bücherei der Stadt ist auch am Sonntag offen und wird von vielen Menschen besucht.",
    "fr": "La bibliothèque de la ville est ouverte le dimanche pour tous les habitants.",
    "es": "La biblioteca de la ciudad está abierta los domingos para todos los vecinos, que leen más.",
    "it": "La biblioteca della città è aperta anche la domenica per tutti gli abitanti.",
    "pt": "A biblioteca da cidade está aberta aos domingos para todos os moradores, que não pagam.",
    "nl": "De bibliotheek van de stad is ook op zondag open voor iedereen die wil lezen.",
    "sv": "Stadens bibliotek är öppet också på söndagar för alla som vill läsa och inte kan köpa böcker.",
    "da": "Byens bibliotek er også åbent om søndagen for alle, der gerne vil læse, hvor de bliver glade.",
    "no": "Byens bibliotek er også åpent på søndager for alle som vil lese, og det ble bygget mellom to elver.",
    "fi": "Kaupungin kirjasto on avoinna myös sunnuntaisin, ja se palvelee kaikkia jotka haluavat lukea.",
    "et": "Linna raamatukogu on avatud ka pühapäeviti ning see on kõigile, kes tahavad lugeda.",
    "hu": "A város könyvtára vasárnap is nyitva van, és mindenki számára ingyenes, aki olvasni szeretne.",
    "pl": "Biblioteka w mieście jest otwarta także w niedzielę dla wszystkich, którzy chcą czytać.",
    "cs": "Městská knihovna je otevřena také v neděli pro všechny, kteří chtějí číst, a není drahá.",
    "sk": "Mestská knižnica je otvorená aj v nedeľu pre všetkých, ktorí chcú čítať, a nie je to ďaleko.",
    "tr": "Şehrin kütüphanesi pazar günleri de açık ve herkes için bir okuma yeri olarak kullanılır.",
    "ru": "Городская библиотека открыта и в воскресенье для всех, кто хочет читать, но не может купить книги.",
    "uk": "Міська бібліотека відкрита і в неділю для всіх, хто хоче читати, але не може купити книги.",
    "bg": "Градската библиотека е отворена и в неделя за всички, които искат да четат.",
    "el": "Η βιβλιοθήκη της πόλης είναι ανοιχτή και την Κυριακή.",
    "he": "הספרייה של העיר פתוחה גם ביום ראשון",
    "ar": "المكتبة في المدينة مفتوحة أيضا يوم الأحد",
    "fa": "کتابخانه شهر در روز یکشنبه نیز برای همه باز است",
    "ja": "市の図書館は日曜日も開いています",
    "zh": "城市图书馆星期天也开放",
    "ko": "도시 도서관은 일요일에도 문을 엽니다",
    "hi": "शहर का पुस्तकालय रविवार को भी खुला है",
    "th": "ห้องสมุดของเมืองเปิดวันอาทิตย์",
}


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_tells_its_language(language):
    assert language_of(SENTENCES[language]) == language


@pytest.mark.parametrize("text", ["", "7 42 3.14", "xyz", "Karlsruhe", "tcp ip http"])
def test_what_is_too_short_is_unknown(text):
    assert language_of(text) == "unknown"


def test_the_same_word_again_says_nothing_new():
    assert (
        language_of("DIN 15 ; DIN 16 ; DIN 17 ; DIN 18 : Prüfung von Kränen und der Maschinen für die Montage") == "de"
    )


def test_shares():
    texts = Texts.from_strings([SENTENCES["de"]] * 3 + [SENTENCES["en"], "", "  "])
    assert shares(texts) == {"de": 0.75, "en": 0.25}
    assert list(shares(texts)) == ["de", "en"]
    assert shares(Texts.from_strings([])) == {}


def test_a_text_that_is_cut_inside_a_character_is_read():
    assert shares(Texts.from_strings(["ab " * 399 + "äöü" + " x" * 100])) == {"unknown": 1.0}


def test_the_sample_data_is_english():
    texts = read(quickstart_path("train")).texts
    assert texts is not None
    assert shares(texts)["en"] > 0.98


def test_every_language_has_a_name():
    codes = {*WORDS, *ENDINGS, *(code for codes in LETTERS.values() for code in codes.split())}
    codes |= {code for _, _, code in SCRIPTS}
    assert codes | {"unknown"} == NAMES.keys()
    assert all(len(words.split()) == len(set(words.split())) for words in WORDS.values())

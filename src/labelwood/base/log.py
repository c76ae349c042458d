"""The logger of the library, `labelwood`: quiet until the program that uses it asks for more.

    logging.basicConfig(level=logging.INFO)  # trainings begun and ended, models opened and saved, lines left out
    logging.getLogger("labelwood").setLevel(logging.DEBUG)  # every stage with its seconds, too

What a user should act on is a warning (the module `warnings`) or an error; what only tells how it went is logged.
"""

from __future__ import annotations

import logging

LOG = logging.getLogger("labelwood")
LOG.addHandler(logging.NullHandler())

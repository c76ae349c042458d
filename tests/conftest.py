"""Settings every test shares."""

from __future__ import annotations

import hypothesis

hypothesis.settings.register_profile("labelwood", deadline=None, print_blob=True)
hypothesis.settings.load_profile("labelwood")

"""``python -m lastword.cli``, for where the script is not on the path."""

from __future__ import annotations

import sys

from lastword.cli import main

sys.exit(main())

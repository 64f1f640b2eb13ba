"""Never answers start."""

import time

time.sleep(600)

"""The only reader of the environment.

Every variable has a type, a default that works on a laptop, and its meaning in a docstring: `make settings` writes
`.env.example` from them.
"""

from voiceapp.settings.installation import *  # noqa: F403
from voiceapp.settings.limits import *  # noqa: F403
from voiceapp.settings.models import *  # noqa: F403
from voiceapp.settings.operators import *  # noqa: F403
from voiceapp.settings.removed import *  # noqa: F403
from voiceapp.settings.upstream import *  # noqa: F403
from voiceapp.settings.work import *  # noqa: F403

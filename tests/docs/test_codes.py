"""What the reference says of errors and close codes."""

from __future__ import annotations

from voiceapp.docs.codes import CLOSE_CODES, REFUSALS
from voiceapp.realtime.close_codes import MEANINGS


def test_every_close_code_has_a_remedy() -> None:
    assert [code.code for code in CLOSE_CODES] == [str(code) for code in MEANINGS]
    assert all(code.meaning.endswith(".") and code.remedy.endswith((".", "'")) for code in CLOSE_CODES)


def test_codes_have_the_name_of_openais_style() -> None:
    found = {code.code: code.compatible for code in REFUSALS}
    assert found["Throttling.RateQuota"] == "rate_limit_exceeded"
    assert found["InvalidParameter"] == "invalid_parameter"
    assert len(found) == len(REFUSALS)

"""Names that Django looks up here."""

DATETIME_FORMAT = "Y-m-d H:i:s"

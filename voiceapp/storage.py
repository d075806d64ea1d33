"""Static files: WhiteNoise's compressed manifest, with imports between ES modules rewritten to hashed names too."""

from whitenoise.storage import CompressedManifestStaticFilesStorage


class ModuleManifestStorage(CompressedManifestStaticFilesStorage):
    support_js_module_import_aggregation = True

"""The admin application, pointed at the operators' site."""

from importlib import import_module

from django.contrib.admin.apps import AdminConfig


class OperatorsAdminConfig(AdminConfig):
    default_site = "voiceapp.operators.site.OperatorsSite"

    def ready(self) -> None:
        super().ready()  # Django's own pages of users and groups, which ours replace
        import_module("voiceapp.operators.people")
        import_module("voiceapp.operators.audit")

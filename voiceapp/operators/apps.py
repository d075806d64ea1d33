"""The admin application, pointed at the operators' site."""

from django.contrib.admin.apps import AdminConfig


class OperatorsAdminConfig(AdminConfig):
    default_site = "voiceapp.operators.site.OperatorsSite"

"""The operators' AdminSite: what is running, and who may use it. Each app registers its own admin.py."""

from django.contrib import admin


class OperatorsSite(admin.AdminSite):
    site_header = "Voiceapp"
    site_title = "Voiceapp"
    index_title = "Operations"

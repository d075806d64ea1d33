"""Logins and groups, as Django has them, with the forms of the theme."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

admin.site.unregister((User, Group))


@admin.register(User)
class PeopleAdmin(UserAdmin, ModelAdmin):
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    filter_horizontal = ()


@admin.register(Group)
class GroupsAdmin(GroupAdmin, ModelAdmin):
    filter_horizontal = ()

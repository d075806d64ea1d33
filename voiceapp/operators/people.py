"""Logins and groups, as Django has them, with the forms of the theme."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from voiceapp.accounts.models import Membership
from voiceapp.accounts.own_rows import own, sees_all
from voiceapp.accounts.second_factor import turn_off

admin.site.unregister((User, Group))


@admin.register(User)
class PeopleAdmin(UserAdmin, ModelAdmin):
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    filter_horizontal = ()
    list_display = (*UserAdmin.list_display, "has_second_factor")
    actions = ("remove_second_factor",)

    @admin.display(boolean=True, description="two-factor")
    def has_second_factor(self, row: User) -> bool:
        return bool(row.with_factor)

    @admin.action(description="Remove two-factor authentication", permissions=["give_rights"])
    def remove_second_factor(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        removed = sum(turn_off(person, by=request.user) for person in queryset)
        self.message_user(request, f"{removed} of these people sign in with their password alone from now on.")

    def has_give_rights_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        people = super().get_queryset(request).annotate(with_factor=Q(second_factor__isnull=False))
        if sees_all(request.user):
            return people
        return people.filter(pk__in=own(Membership.objects.all(), request.user).values("user"))

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> tuple[str, ...]:
        """Only superusers give rights: others could give themselves all of them."""
        rights = ("is_staff", "is_superuser", "groups", "user_permissions")
        return () if request.user.is_superuser else rights

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        is_above = obj is not None and obj.is_superuser and not request.user.is_superuser
        return bool(super().has_change_permission(request, obj)) and not is_above


@admin.register(Group)
class GroupsAdmin(GroupAdmin, ModelAdmin):
    filter_horizontal = ()

"""Who a caller is: by key, by login, as a guest."""

from __future__ import annotations

import dataclasses
import time
from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.utils import timezone

from tests.conftest import Member
from voiceapp.accounts.auth import (
    GUESTS,
    Caller,
    caller_from_bearer,
    caller_from_user,
    caller_of_key,
    guest_caller,
    key_digest_of,
    revoked_keys,
)
from voiceapp.accounts.keys import mint
from voiceapp.accounts.models import Account, ApiKey, Membership
from voiceapp.accounts.temporary_keys import mint as temporary_key
from voiceapp.database.thread import run_in_db_thread
from voiceapp.errors import AccessDenied, InvalidApiKey


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_it_knows_the_holder_of_a_key(alice: Member, scheme: str) -> None:
    caller = await caller_from_bearer(f"{scheme} {alice.key}")
    assert (caller.account_id, caller.workspace_id, caller.key_id) == (
        alice.account.pk,
        alice.workspace.pk,
        alice.row.pk,
    )
    assert caller.user_id is None
    assert not caller.is_guest
    assert alice.key not in repr(caller)


async def test_a_right_of_a_key_counts_whichever_way_its_holder_comes(alice: Member) -> None:
    expiry = timezone.now() + timedelta(days=1)
    decided = {
        "scopes": ["inference", "tasks"],
        "allowed_models": ["voice"],
        "monthly_budget_nano": 70,
        "task_priority": 3,
        "expires_at": expiry,
    }
    await ApiKey.objects.filter(pk=alice.row.pk).aupdate(**decided)

    by_bearer = await caller_from_bearer(alice.authorization)
    by_key = await run_in_db_thread(caller_of_key, alice.row.pk)
    token = temporary_key(await key_digest_of(alice.row.pk), int(time.time()) + 60)

    assert by_bearer == by_key
    assert (by_key.scopes, by_key.allowed_models) == ({"inference", "tasks"}, {"voice"})
    assert (by_key.monthly_budget_nano, by_key.task_priority, by_key.expires_at) == (70, 3, expiry)
    by_token = await caller_from_bearer(f"Bearer {token}")
    assert by_token == dataclasses.replace(by_key, is_temporary=True, expires_at=by_token.expires_at)


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Bearer nonsense", "Basic {key}", "{key}", "Bearer {key}x", "Bearer {key} {key}"],
)
async def test_it_refuses_what_is_no_bearer_key(alice: Member, header: str | None) -> None:
    with pytest.raises(InvalidApiKey):
        await caller_from_bearer(header and header.format(key=alice.key))


async def refusal(key: str) -> str:
    with pytest.raises(InvalidApiKey) as refused:
        await caller_from_bearer(f"Bearer {key}")
    return refused.value.message


async def test_it_gives_the_same_answer_whatever_is_wrong_with_a_key(
    alice: Member, bob: Member, charlie: Member
) -> None:
    now = timezone.now()
    await ApiKey.objects.filter(pk=alice.row.pk).aupdate(revoked_at=now)
    await ApiKey.objects.filter(pk=bob.row.pk).aupdate(
        created_at=now - timedelta(days=2), expires_at=now - timedelta(days=1)
    )
    await Account.objects.filter(pk=charlie.account.pk).aupdate(is_active=False)
    answers = {await refusal(key) for key in (alice.key, bob.key, charlie.key, mint(), "sk-nonsense")}
    assert len(answers) == 1


async def test_it_lists_the_keys_that_may_no_longer_be_used(alice: Member, bob: Member, charlie: Member) -> None:
    ids = [alice.row.pk, bob.row.pk, charlie.row.pk]
    assert await revoked_keys(ids) == set()

    now = timezone.now()
    await ApiKey.objects.filter(pk=alice.row.pk).aupdate(revoked_at=now)
    assert await revoked_keys(ids) == {alice.row.pk}
    await ApiKey.objects.filter(pk=bob.row.pk).aupdate(created_at=now - timedelta(days=2), expires_at=now)
    assert await revoked_keys(ids) == {alice.row.pk, bob.row.pk}
    await Account.objects.filter(pk=charlie.account.pk).aupdate(is_active=False)
    assert await revoked_keys(ids) == set(ids)
    assert await revoked_keys([]) == set()


async def test_it_counts_a_deleted_key_as_revoked(alice: Member) -> None:
    pk = alice.row.pk
    await alice.row.adelete()
    assert await revoked_keys([pk]) == {pk}


async def test_it_keeps_a_key_within_its_scopes(alice: Member) -> None:
    await ApiKey.objects.filter(pk=alice.row.pk).aupdate(scopes=["inference"])
    caller = await caller_from_bearer(alice.authorization)
    caller.require("inference")
    with pytest.raises(AccessDenied, match="may not be used for realtime"):
        caller.require("realtime")


async def test_it_lets_a_member_talk_in_the_name_of_the_account(alice: Member) -> None:
    assert await caller_from_user(alice.user) == Caller(
        account_id=alice.account.pk,
        workspace_id=alice.workspace.pk,
        key_id=None,
        user_id=alice.user.pk,
        is_guest=False,
        label="alice",
    )


async def test_it_takes_the_first_active_account_of_a_member_of_several(alice: Member, charlie: Member) -> None:
    await Membership.objects.acreate(user=alice.user, account=charlie.account)
    assert (await caller_from_user(alice.user)).account_id == alice.account.pk
    await Account.objects.filter(pk=alice.account.pk).aupdate(is_active=False)
    assert (await caller_from_user(alice.user)).account_id == charlie.account.pk


async def test_it_gives_an_operator_the_first_account_but_never_the_guests(operator: User) -> None:
    await guest_caller("some session")
    with pytest.raises(AccessDenied, match="no active account"):
        await caller_from_user(operator)
    account = await Account.objects.acreate(name="House")
    caller = await caller_from_user(operator)
    assert caller.account_id == account.pk
    assert (await account.workspaces.aget()).pk == caller.workspace_id


async def test_it_refuses_people_who_are_not_signed_in_or_belong_nowhere(alice: Member) -> None:
    with pytest.raises(AccessDenied, match="Sign in"):
        await caller_from_user(AnonymousUser())
    alice.user.is_active = False
    with pytest.raises(AccessDenied, match="Sign in"):
        await caller_from_user(alice.user)
    nobody = await User.objects.acreate(username="nobody")
    with pytest.raises(AccessDenied, match="no active account"):
        await caller_from_user(nobody)


async def test_it_makes_the_guests_account_when_the_first_guest_comes(db: None) -> None:
    first, second = await guest_caller("session one"), await guest_caller("session two")
    assert first.is_guest
    assert first.account_id == second.account_id == (await Account.objects.aget(name=GUESTS)).pk
    assert first.workspace_id == second.workspace_id
    assert first.key_id is first.user_id is None
    assert first.label != second.label
    assert "session one" not in repr(first)


async def test_it_keeps_guests_out_when_their_account_is_off(db: None) -> None:
    await guest_caller("a")
    await Account.objects.filter(name=GUESTS).aupdate(is_active=False)
    with pytest.raises(AccessDenied, match="Guests"):
        await guest_caller("a")

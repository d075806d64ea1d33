"""Every migration can be applied while processes of the release before go on: they neither fail nor lose a row.

Two proofs for each migration but the first of an app. By its operations: it only adds what older code need not know.
By trying: at the schema that it leaves, the models of the state before write, change and read a row of every kind, and
the present code's schema reads it.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.db import connection, models
from django.db.migrations import operations
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.migration import Migration
from django.db.migrations.operations.base import Operation
from django.db.migrations.recorder import MigrationRecorder
from django.db.models.fields import NOT_PROVIDED
from django.utils import timezone

Key = tuple[str, str]

RELEASE_1_0_0 = {
    "accounts": ("0001_initial", "0002_usage", "0003_task_priority", "0004_hold_request"),
    "realtime": (
        *("0001_initial", "0002_drop_voice", "0003_served_by", "0004_turn_is_spoken", "0005_aoq", "0006_entrance"),
        *("0007_grant_runs_tasks", "0008_turn_served_by", "0009_reported_at"),
    ),
    "tasks": ("0001_initial", "0002_uploads", "0003_storage_use"),
}
"""What a database of that release has applied, and has as one migration for each app now."""

SAFE = (
    operations.CreateModel,
    operations.RemoveConstraint,
    operations.AddIndex,
    operations.RemoveIndex,
    operations.RenameIndex,
    operations.AlterModelOptions,
    operations.AlterModelManagers,
    operations.RunPython,
)
"""Whatever their arguments. `RunPython` changes rows; that older code can read them still is seen by trying."""


def ours() -> dict[Key, Migration]:
    """Migrations of this project that follow another of their app."""
    loader = MigrationLoader(None)
    names = {config.label for config in apps.get_app_configs() if config.name.startswith("voiceapp.")}
    return {
        key: migration
        for key, migration in loader.disk_migrations.items()
        if key[0] in names and not migration.initial and not key[1].startswith("0001_")
    }


MIGRATIONS = ours()


def harm(migration: Migration) -> list[str]:
    """Operations that a process of the release before could stumble over."""
    loader = MigrationLoader(None)
    node = loader.graph.node_map[migration.app_label, migration.name]
    state = loader.project_state([parent.key for parent in node.parents])
    found = []
    created: set[str] = set()
    for operation in migration.operations:
        before = state.clone()
        if isinstance(operation, operations.CreateModel):
            created.add(operation.name_lower)
        is_new = getattr(operation, "model_name_lower", None) in created
        if not is_new and not is_safe(operation, migration.app_label, before):
            found.append(operation.describe())
        operation.state_forwards(migration.app_label, state)
    return found


def is_safe(operation: Operation, app: str, before: Any) -> bool:
    if isinstance(operation, SAFE):
        return True
    if isinstance(operation, operations.AddField):
        return has_value_in_the_database(operation.field)
    if isinstance(operation, operations.AlterField):
        old = before.models[app, operation.model_name_lower].fields[operation.name]
        return is_wider(old, operation.field)
    return False


def has_value_in_the_database(field: models.Field[Any, Any]) -> bool:
    """A row that is inserted without this column is accepted."""
    return bool(field.null or field.many_to_many or field.db_default is not NOT_PROVIDED)


def is_wider(old: models.Field[Any, Any], new: models.Field[Any, Any]) -> bool:
    """What fitted the column before still fits; names and words for people may change as they like."""
    return (
        type(old) is type(new)
        and (new.null or not old.null)
        and (old.unique or not new.unique)
        and old.db_column == new.db_column
        and (new.max_length is None or (old.max_length is not None and new.max_length >= old.max_length))
    )


@pytest.mark.django_db(transaction=True)
def test_rows_of_release_1_0_0_survive_an_upgrade() -> None:
    executor, recorder = MigrationExecutor(connection), MigrationRecorder(connection)
    latest = executor.loader.graph.leaf_nodes()
    squashed = [key for key in executor.loader.graph.nodes if key[0] in RELEASE_1_0_0 and "_squashed_" in key[1]]
    try:
        executor.migrate([*squashed, ("agents", None), ("webhooks", "0001_initial")])
        recorder.migration_qs.filter(app__in=RELEASE_1_0_0).delete()
        for app, names in RELEASE_1_0_0.items():
            for name in names:
                recorder.record_applied(app, name)
        loader = MigrationExecutor(connection).loader
        old = loader.project_state(newest(loader.applied_migrations.keys() & loader.graph.nodes.keys())).apps
        before = {row._meta.label: columns_of(type(row), row.pk) for row in rows_of(old)}
        assert {"accounts.ApiKey", "realtime.Turn", "tasks.Subtask", "webhooks.Delivery"} <= set(before)
    finally:
        MigrationExecutor(connection).migrate(latest)
    for label, values in before.items():
        present = apps.get_model(label)
        assert columns_of(present, values[present._meta.pk.attname], *values) == values, label


def columns_of(model: type[models.Model], key: object, *names: str) -> dict[str, Any]:
    return model._default_manager.filter(pk=key).values(*names).get()


@pytest.mark.parametrize("key", sorted(MIGRATIONS), ids=".".join)
def test_it_adds_only_what_older_processes_need_not_know(key: Key) -> None:
    assert harm(MIGRATIONS[key]) == []


@pytest.mark.parametrize("field", [models.IntegerField(), models.IntegerField(default=0), models.CharField(default="")])
def test_a_column_that_older_processes_would_have_to_fill_is_found(field: models.Field[Any, Any]) -> None:
    migration = Migration("0005_column", "realtime")
    migration.operations = [operations.AddField("turn", "column", field)]
    assert not is_safe(migration.operations[0], "realtime", None)
    assert not is_safe(operations.RemoveField("turn", "user_text"), "realtime", None)
    assert not is_safe(operations.RenameField("turn", "user_text", "words"), "realtime", None)
    assert not is_safe(operations.RunSQL("DROP TABLE realtime_turn"), "realtime", None)
    assert is_safe(operations.AddField("turn", "column", models.IntegerField(null=True)), "realtime", None)


def rows_of(old: Any) -> Iterator[models.Model]:
    """A row of every kind that belongs to this project, written by the models of another state."""
    made: dict[str, models.Model] = {}

    def make(model: type[models.Model]) -> models.Model:
        label = model._meta.label
        if label not in made:
            values = {column.attname: value(column) for column in model._meta.concrete_fields if needs_value(column)}
            made[label] = model._default_manager.create(**values)
        return made[label]

    def value(column: models.Field[Any, Any]) -> Any:
        if isinstance(column, models.ForeignKey):
            return make(column.remote_field.model).pk
        if column.choices:
            return next(iter(column.choices))[0]
        if isinstance(column, models.DateTimeField):
            return timezone.now() + datetime.timedelta(days=1)
        if isinstance(column, models.CharField | models.TextField):
            return "x"
        return b"x" if isinstance(column, models.BinaryField) else 1

    for model in old.get_models():
        if model._meta.app_label in {key[0] for key in MIGRATIONS} | {"webhooks", *RELEASE_1_0_0}:
            yield make(model)


def needs_value(column: models.Field[Any, Any]) -> bool:
    is_automatic = isinstance(column, models.AutoField)
    return not (is_automatic or column.null or column.has_default() or column.has_db_default())


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("key", sorted(MIGRATIONS), ids=".".join)
def test_processes_of_the_release_before_write_and_read_at_the_new_schema(key: Key) -> None:
    latest = MigrationExecutor(connection).loader.graph.leaf_nodes()
    try:
        MigrationExecutor(connection).migrate([key])
        loader = MigrationExecutor(connection).loader
        # All that is applied but this one: what the processes of the release before know.
        old = loader.project_state(newest((loader.applied_migrations.keys() & loader.graph.nodes.keys()) - {key})).apps
        rows = list(rows_of(old))
        assert len(rows) > 5
        for row in rows:
            row.save()
            type(row)._default_manager.get(pk=row.pk)
        MigrationExecutor(connection).migrate(latest)
        for row in rows:
            present = apps.get_model(row._meta.label)
            assert present._default_manager.filter(pk=row.pk).exists(), row._meta.label
    finally:
        MigrationExecutor(connection).migrate(latest)


def newest(keys: set[Key]) -> list[Key]:
    """The last of each app; their names begin with their numbers."""
    return [max(key for key in keys if key[0] == app) for app in sorted({app for app, _ in keys})]

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tasks", "0001_squashed_0003_storage_use")]

    operations = [
        migrations.AddIndex("task", models.Index(fields=["-submitted_at", "-id"], name="task_newest_first")),
    ]

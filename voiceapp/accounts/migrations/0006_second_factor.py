import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0005_release_1_1"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.CreateModel(
            name="SecondFactor",
            fields=[
                ("user", models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name="second_factor", serialize=False, to=settings.AUTH_USER_MODEL)),
                ("sealed_secret", models.CharField(max_length=200)),
                ("last_step", models.BigIntegerField()),
                ("recovery_digests", models.JSONField()),
            ],
        ),
    ]

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0008_see_every_account")]

    operations = [
        migrations.CreateModel(
            name="MintedKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("realtime_only", models.BooleanField()),
                ("made_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("expires_at", models.DateTimeField(db_index=True)),
                (
                    "key",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="minted", to="accounts.apikey"
                    ),
                ),
            ],
            options={"verbose_name": "temporary key", "ordering": ("expires_at", "pk")},
        ),
    ]

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("accounts", "0007_usage_agent")]

    operations = [
        migrations.AlterModelOptions(
            name="account",
            options={
                "ordering": ("name",),
                "permissions": (("see_every_account", "Can see the rows of every account"),),
            },
        ),
    ]

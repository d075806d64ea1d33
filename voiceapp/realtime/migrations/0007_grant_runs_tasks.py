from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('realtime', '0006_entrance'),
    ]

    operations = [
        migrations.AddField(
            model_name='aoqgrant',
            name='runs_tasks',
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]

from django.db import migrations, models


def name_entrances(apps, schema_editor):
    """Tell the entrance apart from the transport. Guests come by the page, keys are programs'."""
    sessions = apps.get_model('realtime', 'RealtimeSession').objects
    sessions.filter(is_guest=True).update(entrance='page')
    sessions.filter(api_key__isnull=False).update(entrance='program')
    sessions.filter(transport='page').update(entrance='page', transport='websocket')


class Migration(migrations.Migration):

    dependencies = [
        ('realtime', '0005_aoq'),
    ]

    operations = [
        migrations.AddField(
            model_name='realtimesession',
            name='entrance',
            field=models.CharField(blank=True, choices=[('program', 'Program'), ('page', 'Page')], max_length=10, null=True),
        ),
        migrations.RunPython(name_entrances, migrations.RunPython.noop),
    ]

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('realtime', '0007_grant_runs_tasks'),
    ]

    operations = [
        migrations.AddField(
            model_name='turn',
            name='served_by',
            field=models.CharField(blank=True, db_default='', default='', help_text='The service and the model that replied, where one of several could.', max_length=100),
        ),
    ]

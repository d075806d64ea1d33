from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('realtime', '0010_held_seat'),
    ]

    operations = [
        migrations.AddField(
            model_name='aoqgrant',
            name='languages',
            field=models.CharField(blank=True, db_default='', default='', max_length=160),
        ),
    ]

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('realtime', '0010_held_seat'), ('realtime', '0011_grant_languages'), ('realtime', '0012_session_agent_version'), ('realtime', '0013_server_process'), ('realtime', '0014_held_seat_agent'), ('realtime', '0015_operator_request'), ('realtime', '0016_recording'), ('realtime', '0017_live_words')]

    dependencies = [
        ('accounts', '0005_release_1_1'),
        ('realtime', '0001_squashed_0009_reported_at'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='HeldSeat',
            fields=[
                ('id', models.CharField(max_length=32, primary_key=True, serialize=False)),
                ('is_guest', models.BooleanField()),
                ('agent', models.CharField(db_default='', default='', max_length=60)),
                ('client_address', models.CharField(max_length=45)),
                ('held_by', models.CharField(max_length=100)),
                ('taken_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.account')),
            ],
        ),
        migrations.CreateModel(
            name='OperatorRequest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('end', 'End'), ('mute', 'Mute'), ('unmute', 'Unmute'), ('say', 'Say')], max_length=6)),
                ('words', models.CharField(blank=True, default='', max_length=300)),
                ('asked_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('taken_at', models.DateTimeField(blank=True, null=True)),
                ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='requests', to='realtime.realtimesession')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('taken_at__isnull', True)), fields=['id'], name='request_open')],
            },
        ),
        migrations.CreateModel(
            name='Recording',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100)),
                ('size', models.PositiveBigIntegerField()),
                ('began_at', models.DateTimeField(db_index=True)),
                ('sound_bytes', models.PositiveBigIntegerField()),
                ('peaks', models.JSONField()),
                ('is_cut', models.BooleanField(default=False)),
                ('session', models.OneToOneField(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='recording', to='realtime.realtimesession')),
            ],
        ),
        migrations.CreateModel(
            name='ServerProcess',
            fields=[
                ('name', models.CharField(max_length=100, primary_key=True, serialize=False)),
                ('held_since', models.DateTimeField()),
                ('lease_until', models.DateTimeField()),
            ],
        ),
        migrations.AddField(
            model_name='aoqgrant',
            name='languages',
            field=models.CharField(blank=True, db_default='', default='', max_length=160),
        ),
        migrations.AddField(
            model_name='realtimesession',
            name='agent_version',
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='realtimesession',
            name='live_words',
            field=models.JSONField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name='realtimesession',
            name='quality',
            field=models.CharField(blank=True, db_default='', default='', max_length=100),
        ),
        migrations.AddField(
            model_name='realtimesession',
            name='watched_until',
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddIndex(
            model_name='realtimesession',
            index=models.Index(condition=models.Q(('ended_at__isnull', True)), fields=['watched_until'], name='session_watched'),
        ),
    ]

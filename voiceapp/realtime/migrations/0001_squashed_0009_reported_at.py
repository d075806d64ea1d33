import django.db.models.deletion
import django.utils.timezone
import voiceapp.realtime.models
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    # A database of 1.0.0 has all of these; an older one is first brought to that release.
    replaces = [('realtime', '0001_initial'), ('realtime', '0002_drop_voice'), ('realtime', '0003_served_by'), ('realtime', '0004_turn_is_spoken'), ('realtime', '0005_aoq'), ('realtime', '0006_entrance'), ('realtime', '0007_grant_runs_tasks'), ('realtime', '0008_turn_served_by'), ('realtime', '0009_reported_at')]

    initial = True

    dependencies = [
        ('accounts', '0001_squashed_0004_hold_request'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='AoqRelay',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('endpoint', models.CharField(max_length=253)),
                ('port', models.PositiveIntegerField()),
                ('region', models.CharField(blank=True, default='', max_length=40)),
                ('fingerprint', models.CharField(blank=True, default='', max_length=64)),
                ('load', models.PositiveIntegerField(default=0)),
                ('capacity', models.PositiveIntegerField(default=0)),
                ('is_draining', models.BooleanField(default=False)),
                ('heartbeat_at', models.DateTimeField()),
                ('served_by', models.CharField(max_length=100)),
            ],
            options={
                'verbose_name': 'AOQ relay',
                'verbose_name_plural': 'AOQ relays',
                'constraints': [models.UniqueConstraint(fields=('endpoint', 'port'), name='aoq_relay_once')],
            },
        ),
        migrations.CreateModel(
            name='RealtimeSession',
            fields=[
                ('id', models.CharField(default=voiceapp.realtime.models.session_identifier, editable=False, max_length=40, primary_key=True, serialize=False)),
                ('is_guest', models.BooleanField(default=False, verbose_name='guest')),
                ('model', models.CharField(max_length=100)),
                ('transport', models.CharField(choices=[('websocket', 'WebSocket'), ('webrtc', 'WebRTC'), ('aoq', 'AOQ'), ('page', 'Page'), ('relayed', 'WebRTC, relayed')], max_length=10)),
                ('client_address', models.CharField(blank=True, default='', max_length=45)),
                ('started_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('close_code', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('close_reason', models.CharField(blank=True, default='', max_length=123)),
                ('input_audio_ms', models.PositiveBigIntegerField(default=0, verbose_name='input audio (ms)')),
                ('output_audio_ms', models.PositiveBigIntegerField(default=0, verbose_name='output audio (ms)')),
                ('input_tokens', models.PositiveBigIntegerField(default=0)),
                ('output_tokens', models.PositiveBigIntegerField(default=0)),
                ('turn_count', models.PositiveIntegerField(default=0, verbose_name='turns')),
                ('served_by', models.CharField(blank=True, default='', editable=False, max_length=100)),
                ('entrance', models.CharField(blank=True, choices=[('program', 'Program'), ('page', 'Page')], max_length=10, null=True)),
                ('reported_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('account', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='sessions', to='accounts.account')),
                ('api_key', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='sessions', to='accounts.apikey', verbose_name='API key')),
                ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sessions', to='accounts.workspace')),
            ],
            options={
                'verbose_name': 'conversation',
                'ordering': ('-started_at',),
                'indexes': [models.Index(fields=['-started_at'], name='session_newest_first'), models.Index(fields=['account', '-started_at'], name='session_of_account'), models.Index(condition=models.Q(('ended_at__isnull', True)), fields=['started_at'], name='session_open')],
                'constraints': [models.CheckConstraint(condition=models.Q(('close_code__isnull', True), ('ended_at__isnull', False), _connector='OR'), name='session_closed_has_ended'), models.CheckConstraint(condition=models.Q(('is_guest', False), models.Q(('api_key__isnull', True), ('user__isnull', True)), _connector='OR'), name='session_guest_is_nobody'), models.CheckConstraint(condition=models.Q(('transport__in', ['websocket', 'webrtc', 'aoq', 'page', 'relayed'])), name='session_transport_known')],
            },
        ),
        migrations.CreateModel(
            name='Turn',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('ordinal', models.PositiveIntegerField()),
                ('started_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('user_text', models.TextField(blank=True, default='')),
                ('assistant_text', models.TextField(blank=True, default='')),
                ('heard_text', models.TextField(blank=True, default='')),
                ('status', models.CharField(choices=[('completed', 'Completed'), ('cancelled', 'Cancelled'), ('failed', 'Failed'), ('incomplete', 'Incomplete')], max_length=10)),
                ('interrupted', models.BooleanField(default=False)),
                ('input_audio_ms', models.PositiveIntegerField(default=0, verbose_name='input audio (ms)')),
                ('output_audio_ms', models.PositiveIntegerField(default=0, verbose_name='output audio (ms)')),
                ('input_tokens', models.PositiveIntegerField(default=0)),
                ('output_tokens', models.PositiveIntegerField(default=0)),
                ('end_of_turn_ms', models.PositiveIntegerField(blank=True, help_text="From the arrival of the caller's last speech to the decision that the turn is over.", null=True, verbose_name='end of turn (ms)')),
                ('recognition_ms', models.PositiveIntegerField(blank=True, help_text="From the arrival of the caller's last speech until the turn was over and its words were known.", null=True, verbose_name='recognition (ms)')),
                ('first_token_ms', models.PositiveIntegerField(blank=True, help_text="From the arrival of the caller's last speech, or of the request, until the first words came.", null=True, verbose_name='first token (ms)')),
                ('first_audio_ms', models.PositiveIntegerField(blank=True, help_text="From the arrival of the caller's last speech, or of the request, until the first audio was sent.", null=True, verbose_name='first audio (ms)')),
                ('is_spoken', models.BooleanField(db_default=False, default=False, help_text='Whether the turn was spoken. Only then is first audio the voice to voice time.', verbose_name='spoken')),
                ('served_by', models.CharField(blank=True, db_default='', default='', help_text='The service and the model that replied, where one of several could.', max_length=100)),
                ('session', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='turns', to='realtime.realtimesession')),
            ],
            options={
                'ordering': ('session', 'ordinal'),
                'indexes': [models.Index(fields=['started_at'], name='turn_oldest_first')],
                'constraints': [models.UniqueConstraint(fields=('session', 'ordinal'), name='turn_ordinal_once_per_session'), models.CheckConstraint(condition=models.Q(('ordinal__gte', 1)), name='turn_ordinal_from_one'), models.CheckConstraint(condition=models.Q(('status__in', ('completed', 'cancelled', 'failed', 'incomplete'))), name='turn_status_known'), models.CheckConstraint(condition=models.Q(('heard_text', ''), ('interrupted', True), _connector='OR'), name='turn_heard_if_interrupted')],
            },
        ),
        migrations.CreateModel(
            name='AoqGrant',
            fields=[
                ('sid', models.CharField(editable=False, max_length=32, primary_key=True, serialize=False)),
                ('guest', models.CharField(blank=True, default='', max_length=40)),
                ('temporary_key_expires_at', models.DateTimeField(null=True)),
                ('session_key', models.CharField(blank=True, default='', max_length=40)),
                ('model', models.CharField(max_length=100)),
                ('time_zone', models.CharField(blank=True, default='', max_length=64)),
                ('client_address', models.CharField(blank=True, default='', max_length=45)),
                ('issued_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(null=True)),
                ('runs_tasks', models.BooleanField(db_default=False, default=False)),
                ('account', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.account')),
                ('api_key', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.apikey')),
                ('user', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.workspace')),
            ],
            options={
                'verbose_name': 'AOQ grant',
                'indexes': [models.Index(fields=['expires_at'], name='aoq_grant_expiry'), models.Index(fields=['account', 'issued_at'], name='aoq_grant_of_account')],
                'constraints': [models.CheckConstraint(condition=models.Q(('guest', ''), models.Q(('api_key__isnull', True), ('user__isnull', True)), _connector='OR'), name='aoq_grant_guest_is_nobody')],
            },
        ),
    ]

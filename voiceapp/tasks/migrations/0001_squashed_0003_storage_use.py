import django.db.models.deletion
import django.utils.timezone
import voiceapp.tasks.models
from django.db import migrations, models


class Migration(migrations.Migration):

    # A database of 1.0.0 has all of these; an older one is first brought to that release.
    replaces = [('tasks', '0001_initial'), ('tasks', '0002_uploads'), ('tasks', '0003_storage_use')]

    initial = True

    dependencies = [
        ('accounts', '0001_squashed_0004_hold_request'),
    ]

    operations = [
        migrations.CreateModel(
            name='StorageUse',
            fields=[
                ('account', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='storage_use', serialize=False, to='accounts.account')),
                ('result_bytes', models.PositiveBigIntegerField(default=0, verbose_name='results')),
                ('upload_bytes', models.PositiveBigIntegerField(default=0, verbose_name='uploads')),
            ],
            options={
                'verbose_name': 'storage use',
                'verbose_name_plural': 'storage use',
                'ordering': ('-result_bytes', 'account'),
            },
        ),
        migrations.CreateModel(
            name='Task',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('due_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('version', models.PositiveIntegerField(default=0, editable=False)),
                ('attempts', models.PositiveSmallIntegerField(default=0, editable=False)),
                ('leased_by', models.CharField(blank=True, default='', editable=False, max_length=80)),
                ('task_id', models.CharField(default=voiceapp.tasks.models.task_identifier, editable=False, max_length=36, unique=True, verbose_name='task')),
                ('kind', models.CharField(max_length=80)),
                ('model_name', models.CharField(max_length=100, verbose_name='model')),
                ('request_id', models.CharField(editable=False, max_length=36)),
                ('order', models.JSONField(default=dict)),
                ('status', models.CharField(choices=[('PENDING', 'Pending'), ('RUNNING', 'Running'), ('SUCCEEDED', 'Succeeded'), ('FAILED', 'Failed'), ('CANCELED', 'Canceled')], default='PENDING', max_length=9)),
                ('priority', models.SmallIntegerField(default=0)),
                ('submitted_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('scheduled_at', models.DateTimeField(blank=True, null=True, verbose_name='started')),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('progress', models.FloatField(default=0.0)),
                ('code', models.CharField(blank=True, default='', max_length=60)),
                ('message', models.CharField(blank=True, default='', max_length=500)),
                ('output', models.JSONField(blank=True, default=dict)),
                ('usage', models.JSONField(blank=True, default=dict)),
                ('account', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='tasks', to='accounts.account')),
                ('key', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='accounts.apikey', verbose_name='API key')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tasks', to='accounts.workspace')),
            ],
            options={
                'ordering': ('-submitted_at', '-id'),
                'indexes': [models.Index(fields=['status', 'due_at'], name='task_due'), models.Index(fields=['status', 'account', '-priority', 'due_at'], name='task_next_of_account'), models.Index(fields=['account', '-submitted_at', '-id'], name='task_of_account'), models.Index(condition=models.Q(('ended_at__isnull', False)), fields=['ended_at'], name='task_ended')],
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', False), ('status__in', ['SUCCEEDED', 'FAILED', 'CANCELED'])), models.Q(('ended_at__isnull', True), ('status__in', ['PENDING', 'RUNNING'])), _connector='OR'), name='task_ended_when_final')],
            },
        ),
        migrations.CreateModel(
            name='Subtask',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('index', models.PositiveIntegerField()),
                ('order', models.JSONField(default=dict)),
                ('status', models.CharField(choices=[('PENDING', 'Pending'), ('RUNNING', 'Running'), ('SUCCEEDED', 'Succeeded'), ('FAILED', 'Failed'), ('CANCELED', 'Canceled')], default='PENDING', max_length=9)),
                ('result', models.JSONField(blank=True, default=dict)),
                ('usage', models.JSONField(blank=True, default=dict)),
                ('code', models.CharField(blank=True, default='', max_length=60)),
                ('message', models.CharField(blank=True, default='', max_length=500)),
                ('task', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='subtasks', to='tasks.task')),
            ],
            options={
                'ordering': ('task', 'index'),
                'constraints': [models.UniqueConstraint(fields=('task', 'index'), name='subtask_once')],
            },
        ),
        migrations.CreateModel(
            name='TaskFile',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=200, unique=True)),
                ('content_type', models.CharField(max_length=100)),
                ('size', models.PositiveBigIntegerField()),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='files', to='tasks.task')),
            ],
        ),
        migrations.CreateModel(
            name='Upload',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=300, unique=True)),
                ('name', models.CharField(max_length=200)),
                ('content_type', models.CharField(max_length=100)),
                ('size', models.PositiveBigIntegerField()),
                ('expires_at', models.DateTimeField(db_index=True)),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='uploads', to='accounts.account')),
            ],
        ),
    ]

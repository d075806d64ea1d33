import django.core.validators
import django.db.models.deletion
import django.db.models.expressions
import django.utils.timezone
import voiceapp.accounts.models
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    # A database of 1.0.0 has all of these; an older one is first brought to that release.
    replaces = [('accounts', '0001_initial'), ('accounts', '0002_usage'), ('accounts', '0003_task_priority'), ('accounts', '0004_hold_request')]

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Account',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100, unique=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('is_active', models.BooleanField(default=True, help_text="Without it, none of the account's keys and people may talk.", verbose_name='active')),
            ],
            options={
                'ordering': ('name',),
            },
        ),
        migrations.CreateModel(
            name='ApiKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(help_text='Where the key is used, so that you know later what to revoke.', max_length=100)),
                ('digest', models.BinaryField(max_length=32, unique=True)),
                ('prefix', models.CharField(editable=False, max_length=7)),
                ('last_four', models.CharField(editable=False, max_length=4)),
                ('scopes', models.JSONField(default=voiceapp.accounts.models.all_scopes)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('expires_at', models.DateTimeField(blank=True, help_text='Leave empty for a key that does not expire.', null=True)),
                ('revoked_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('last_used_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('allowed_models', models.JSONField(blank=True, default=list)),
                ('monthly_budget_nano', models.PositiveBigIntegerField(blank=True, null=True)),
                ('task_priority', models.SmallIntegerField(default=0, help_text='-100 to 100. Of the tasks of one account that wait, those with the highest go first, then the oldest. Other accounts have their turns whatever it is. Tasks that wait already keep theirs.', validators=[django.core.validators.MinValueValidator(-100), django.core.validators.MaxValueValidator(100)], verbose_name='priority of its tasks')),
            ],
            options={
                'verbose_name': 'API key',
                'ordering': ('-created_at', '-pk'),
                'indexes': [models.Index(fields=['-created_at'], name='key_newest_first')],
                'constraints': [models.CheckConstraint(condition=models.Q(('expires_at__isnull', True), ('expires_at__gt', models.F('created_at')), _connector='OR'), name='key_expires_after_creation')],
            },
        ),
        migrations.CreateModel(
            name='MonthlySpend',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('month', models.CharField(max_length=7)),
                ('spent_nano', models.PositiveBigIntegerField(default=0)),
                ('key', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='spending', to='accounts.apikey')),
            ],
            options={
                'ordering': ('-month',),
                'constraints': [models.UniqueConstraint(fields=('key', 'month'), name='spend_once_per_month')],
            },
        ),
        migrations.CreateModel(
            name='Quota',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('family', models.CharField(max_length=20)),
                ('granted', models.PositiveBigIntegerField(verbose_name='granted tokens')),
                ('used', models.PositiveBigIntegerField(default=0, verbose_name='used tokens')),
                ('first_used_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('expires_at', models.DateTimeField()),
                ('account', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='quotas', to='accounts.account')),
            ],
            options={
                'ordering': ('account__name', 'family'),
                'constraints': [models.UniqueConstraint(fields=('account', 'family'), name='quota_once_per_family')],
            },
        ),
        migrations.CreateModel(
            name='Hold',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tokens', models.PositiveBigIntegerField()),
                ('cost_nano', models.PositiveBigIntegerField()),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('expires_at', models.DateTimeField(null=True)),
                ('request_id', models.CharField(db_default='', max_length=100)),
                ('spend', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='holds', to='accounts.monthlyspend')),
                ('quota', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='holds', to='accounts.quota')),
            ],
        ),
        migrations.CreateModel(
            name='Workspace',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100)),
                ('public_id', models.CharField(default=voiceapp.accounts.models.workspace_identifier, editable=False, max_length=40, unique=True, verbose_name='identifier')),
                ('account', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='workspaces', to='accounts.account')),
            ],
            options={
                'ordering': ('account__name', 'name'),
                'constraints': [models.UniqueConstraint(fields=('account', 'name'), name='workspace_name_once_per_account')],
            },
        ),
        migrations.CreateModel(
            name='UsageRecord',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('caller', models.CharField(max_length=200)),
                ('operation', models.CharField(max_length=60)),
                ('family', models.CharField(max_length=20)),
                ('model', models.CharField(max_length=100)),
                ('request_id', models.CharField(max_length=100, verbose_name='request or session')),
                ('unit', models.CharField(max_length=30)),
                ('quantity', models.PositiveBigIntegerField()),
                ('unit_price_nano', models.PositiveBigIntegerField()),
                ('cost_nano', models.PositiveBigIntegerField()),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('account', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.account')),
                ('key', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='accounts.apikey')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.workspace')),
            ],
            options={
                'ordering': ('-created_at', '-pk'),
                'indexes': [models.Index(fields=['account', '-created_at'], name='usage_of_account'), models.Index(fields=['-created_at'], name='usage_newest_first')],
                'constraints': [models.UniqueConstraint(fields=('request_id', 'unit'), name='usage_once_per_request_and_unit'), models.CheckConstraint(condition=models.Q(('cost_nano', django.db.models.expressions.CombinedExpression(models.F('quantity'), '*', models.F('unit_price_nano')))), name='usage_costs_what_it_costs')],
            },
        ),
        migrations.AddField(
            model_name='apikey',
            name='workspace',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='keys', to='accounts.workspace'),
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='accounts.account')),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('user', 'account'), name='membership_once')],
            },
        ),
    ]

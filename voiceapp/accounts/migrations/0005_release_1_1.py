import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('accounts', '0005_guest_site'), ('accounts', '0006_key_is_front'), ('accounts', '0007_usage_agent'), ('accounts', '0008_see_every_account'), ('accounts', '0009_minted_key')]

    dependencies = [
        ('accounts', '0001_squashed_0004_hold_request'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='account',
            options={'ordering': ('name',), 'permissions': (('see_every_account', 'Can see the rows of every account'),)},
        ),
        migrations.AddField(
            model_name='apikey',
            name='is_front',
            field=models.BooleanField(db_default=False, default=False, help_text='Another Voiceapp calls with it (UPSTREAM_API_KEY there) and counts its callers itself: their conversations are not limited as those of one account.', verbose_name='of a front'),
        ),
        migrations.AddField(
            model_name='usagerecord',
            name='agent',
            field=models.CharField(db_default='', default='', max_length=70),
        ),
        migrations.CreateModel(
            name='GuestSite',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('origin', models.CharField(help_text='As the browser shows it, without a path: https://www.example.org', max_length=85, unique=True)),
                ('sessions_at_once', models.PositiveIntegerField(default=5, help_text='Of all visitors of the site together.', verbose_name='conversations at once')),
                ('sessions_per_hour', models.PositiveIntegerField(default=10, help_text='Begun from one Internet address.', verbose_name='conversations an hour')),
                ('session_s', models.PositiveIntegerField(default=180, help_text='In seconds.', validators=[django.core.validators.MinValueValidator(10)], verbose_name='longest conversation')),
                ('account', models.OneToOneField(editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='guest_site', to='accounts.account')),
            ],
            options={
                'ordering': ('origin',),
            },
        ),
        migrations.CreateModel(
            name='MintedKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('realtime_only', models.BooleanField()),
                ('made_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('expires_at', models.DateTimeField(db_index=True)),
                ('key', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='minted', to='accounts.apikey')),
            ],
            options={
                'verbose_name': 'temporary key',
                'ordering': ('expires_at', 'pk'),
            },
        ),
    ]

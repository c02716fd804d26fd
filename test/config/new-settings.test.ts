import { expect, test } from 'bun:test'
import { listNewerSettings, newSettings } from '../../src/config/new-settings.ts'
import { settingList } from '../../src/config/settings.ts'
import { loadFile } from '../helpers/config.ts'

// prettier-ignore
const settingsOf010 = [
  'auth.adminEmail', 'auth.adminPasswordFile', 'auth.oidcAudience', 'auth.oidcClientId', 'auth.oidcIssuer', 'auth.oidcJwksUri', 'auth.signup', 'config', 'dev', 'guard.countries', 'guard.deniedCountries', 'guard.mode', 'guard.totalPerDay', 'guard.trustedAddresses', 'guard.trustedPrefixes', 'limits.phoneCheckBudget', 'limits.phoneSendBudget', 'limits.sendPerMinute', 'limits.verifyPerMinute', 'log.format', 'log.level', 'masterKey', 'metrics.listen', 'retention.auditDays', 'retention.logDays', 'retention.phoneDays', 'retention.requestDays', 'server.corsOrigins', 'server.dataDir', 'server.listen', 'server.masterKeyFile', 'server.noMigrate', 'server.publicUrl', 'server.trustedProxies', 'webhooks.allow', 'webhooks.endpointsMax',
]

test('every setting is of 0.1.0, or of the release that introduced it', () => {
  const introduced = Object.values(newSettings)
    .flat()
    .filter((name) => !name.includes('.*.'))
  expect([...settingsOf010, ...introduced].toSorted()).toEqual(settingList.map(({ name }) => name).toSorted())
})

test('names the settings that an earlier release refuses, where they are set', () => {
  const file =
    '[server]\ndrainSeconds = 3\n[backup]\nevery = "24h"\n[plans.pro]\nlookupsPerMinute = 7\n[[alerts]]\nkind = "webhook"\nurl = "https://ops.example.com"\n'
  const { settings, problems } = loadFile(file)
  expect(problems).toEqual([])
  const namesFor = (release: string) =>
    listNewerSettings(settings, release).map(({ setting, origin, since }) => `${origin} ${setting} ${since}`)
  expect(namesFor('0.1.0').toSorted()).toEqual([
    '/etc/o.toml:2 server.drainSeconds 0.3.0',
    '/etc/o.toml:4 backup.every 0.2.0',
    '/etc/o.toml:6 plans.pro.lookupsPerMinute 0.2.0',
    '/etc/o.toml:8 alerts.webhook.kind 0.3.0',
  ])
  expect(namesFor('0.2.0').toSorted()).toEqual([
    '/etc/o.toml:2 server.drainSeconds 0.3.0',
    '/etc/o.toml:8 alerts.webhook.kind 0.3.0',
  ])
  expect(namesFor('0.3.0')).toEqual([])
})

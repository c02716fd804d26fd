import { expect, test } from 'bun:test'
import { listNewerSettings, newSettings, newValues } from '../../src/config/new-settings.ts'
import { providerKinds } from '../../src/delivery/providers/all-provider-kinds.ts'
import { settingList } from '../../src/config/settings.ts'
import { placeholderNames } from '../../src/delivery/kit/placeholders.ts'
import { restrictedNumberTypes } from '../../src/domain/model/numbering-plans.ts'
import { channels } from '../../src/domain/model/request.ts'
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

/** The kinds of 0.1.0 and 0.2.0, with their settings. */
const providersOf020 = `
twilio accountSid apiKeySecret apiKeySid authToken baseUrl from messagingServiceSid voiceFrom whatsappContentSid whatsappFrom
vonage-sms apiKey apiSecret baseUrl contentId entityId from signatureMethod signatureSecret
vonage-messages apiKey apiSecret baseUrl contentId entityId from signatureSecret
aws-sms accessKeyId baseUrl configurationSet dltEntityId dltTemplateId maxPrice originationIdentity protectConfigurationId
aws-sms receiptTopicArn region secretAccessKey sessionToken voiceOriginationIdentity
aws-sns accessKeyId baseUrl dltEntityId dltTemplateId maxPrice originationNumber region secretAccessKey senderId sessionToken
infobip apiKey baseUrl dltEntityId dltTemplateId from voiceFrom
plivo authId authToken baseUrl dltEntityId dltTemplateId from powerpackUuid
telnyx apiKey baseUrl from messagingProfileId publicKey
messagebird accessKey baseUrl originator signingKey voiceOriginator
bird accessKey baseUrl channelId signingKey workspaceId
whatsapp accessToken apiVersion appSecret baseUrl languages phoneNumberId template verifyToken
telegram baseUrl senderUsername token
http channels secret url
http-template body bodyType channels headers messageIdPath method password refusals successStatus successText successValue url
http-template username
smpp bind caCertificate dataCodingGsm enquireLinkSeconds from fromNpi fromTon host password port receiptIdFormat serviceType
smpp submitIdFormat systemId systemType tls toNpi toTon
`
  .trim()
  .split('\n')
  .map((line) => line.split(' '))

test('every kind of provider, and every setting of one, is of 0.1.0, or of the release that introduced it', () => {
  const kinds = Object.values(newValues).flatMap((values) => values['providers.*.kind'] ?? [])
  const names = Object.values(newSettings).flat()
  const unlisted = providerKinds.flatMap(({ kind, fields }) => {
    const known = providersOf020.filter(([of]) => of === kind).flatMap(([, ...rest]) => rest)
    if (known.length === 0) return kinds.includes(kind) ? [] : [kind]
    return Object.keys(fields)
      .filter((field) => !known.includes(field) && !names.includes(`providers.*.${field}`))
      .map((field) => `${kind} ${field}`)
  })
  expect(unlisted).toEqual([])
})

test('every type of number, channel and placeholder is of 0.2.0, or of the release that introduced it', () => {
  const introduced = Object.values(newValues).flatMap((values) => Object.values(values).flat())
  const of020 = `
    premium sharedCost personal satellite international sms whatsapp telegram voice
    {{to}} {{digits}} {{text}} {{code}} {{requestId}} {{locale}} {{country}} {{channel}} {{applicationName}} {{validitySeconds}}
    {{validityMinutes}} {{callbackUrl}} {{attempt}} {{username}} {{password}} {{basic}}`
  const placeholders = placeholderNames.map((name) => `{{${name}}}`)
  const values = [...restrictedNumberTypes, ...channels, ...placeholders]
  expect(values.filter((value) => !of020.includes(value) && !introduced.includes(value))).toEqual([])
})

test('names the values in lists and the placeholders that an earlier release refuses', () => {
  const file = `[guard]
allowedNumberTypes = ["fixedLine", "premium", "pager"]
[[providers]]
name = "gw"
kind = "http-template"
url = "https://sms.example.com/send"
body = "{{to}} {{text}} {{messageNumber}}"
channels = "sms, rcs"
`
  const { settings, problems } = loadFile(file)
  expect(problems).toEqual([])
  const named = listNewerSettings(settings, '0.2.0').map(({ setting, origin }) => `${origin} ${setting}`)
  expect(named.toSorted()).toEqual([
    '/etc/o.toml:2 guard.allowedNumberTypes = "fixedLine"',
    '/etc/o.toml:2 guard.allowedNumberTypes = "pager"',
    '/etc/o.toml:7 providers.gw.body = "{{messageNumber}}"',
    '/etc/o.toml:8 providers.gw.channels = "rcs"',
  ])
  expect(listNewerSettings(settings, '0.3.0')).toEqual([])
})

test('names the kinds, prices and strategies that an earlier release refuses', () => {
  const file = `[[providers]]
name = "main"
kind = "prelude"
apiToken = "x"
feedback = false
[providers.price]
default = "0.05"
[prices]
currency = "EUR"
[[routes]]
channel = "sms"
providers = ["main"]
strategy = "cost"
`
  const { settings } = loadFile(file)
  const named = listNewerSettings(settings, '0.2.0').map(({ setting }) => setting)
  expect(named.toSorted()).toEqual([
    'prices.currency',
    'providers.main.feedback',
    'providers.main.kind = "prelude"',
    'providers.main.price',
    'routes.1.strategy',
  ])
  expect(listNewerSettings(settings, '0.3.0')).toEqual([])
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

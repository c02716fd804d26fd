// The official Node SDK (npm twilio) against otpd: only the address and the credentials differ from a client of Twilio.
// A test application: its numbers +1XXX5550100 to 0199 always have the code 424242.
import { createRequire } from 'node:module'
const require = createRequire(process.env.MODULES ? process.env.MODULES + '/x.js' : import.meta.url),
  twilio = require('twilio')
const client = twilio(process.env.TWILIO_ACCOUNT_SID, process.env.TWILIO_AUTH_TOKEN)
client.verify.baseUrl = process.env.OTPD_URL // the one line
const VA = process.env.VERIFY_SERVICE_SID,
  service = client.verify.v2.services(VA)
let good = 0,
  all = 0
const ok = (name, holds, saw) => {
  all++
  if (holds) good++
  else process.stdout.write(`✗ ${name} ${JSON.stringify(saw)}\n`)
}
const fails = async (name, call, status, code) => {
  try {
    ok(name, false, await call())
  } catch (e) {
    ok(name, e.status === status && e.code === code && e.constructor.name === 'RestException', {
      status: e.status,
      code: e.code,
      message: e.message,
    })
  }
}
const n = () =>
  '+1415555' + (process.env.LAST4 ? process.env.LAST4 : '0' + (100 + Math.floor(Math.random() * 100)))
const phone = n()
const s = await service.fetch()
ok('service', s.sid === VA && s.codeLength === 6 && s.dateCreated instanceof Date && !isNaN(s.dateCreated), s)
ok('list', (await client.verify.v2.services.list({ limit: 20 })).length === 1)
await fails(
  'services are made elsewhere',
  () => client.verify.v2.services.create({ friendlyName: 'x' }),
  403,
  20403,
)
const v = await service.verifications.create({
  to: phone,
  channel: 'sms',
  locale: 'de',
  deviceIp: '203.0.113.9',
  tags: JSON.stringify({ order: '7' }),
})
ok(
  'create',
  /^VE[0-9a-f]{32}$/.test(v.sid) &&
    v.serviceSid === VA &&
    v.accountSid === process.env.TWILIO_ACCOUNT_SID &&
    v.to === phone &&
    v.channel === 'sms' &&
    v.status === 'pending' &&
    v.valid === false &&
    v.sendCodeAttempts.length === 1 &&
    !isNaN(v.dateCreated),
  v,
)
ok('fetch by sid', (await service.verifications(v.sid).fetch()).status === 'pending')
ok('fetch by phone', (await service.verifications(phone).fetch()).sid === v.sid)
const wrong = await service.verificationChecks.create({ to: phone, code: '000001' })
ok(
  'a wrong code is no exception',
  wrong.status === 'pending' && wrong.valid === false && wrong.sid === v.sid,
  wrong,
)
await fails('malformed code', () => service.verificationChecks.create({ to: phone, code: '12' }), 400, 60200)
const right = await service.verificationChecks.create({ to: phone, code: '424242' })
ok('approved', right.status === 'approved' && right.valid === true && right.sid === v.sid, right)
await fails(
  'gone after approval: check by phone',
  () => service.verificationChecks.create({ to: phone, code: '424242' }),
  404,
  20404,
)
await fails(
  'gone after approval: check by sid',
  () => service.verificationChecks.create({ verificationSid: v.sid, code: '424242' }),
  404,
  20404,
)
await fails('gone after approval: fetch', () => service.verifications(v.sid).fetch(), 404, 20404)
const v2 = await service.verifications.create({ to: phone, channel: 'sms' })
ok('a new one after approval', v2.sid !== v.sid)
const canceled = await service.verifications(v2.sid).update({ status: 'canceled' })
ok('canceled', canceled.status === 'canceled' && canceled.valid === false, canceled)
ok('a canceled one can be fetched', (await service.verifications(v2.sid).fetch()).status === 'canceled')
await fails(
  'a canceled one cannot be checked',
  () => service.verificationChecks.create({ verificationSid: v2.sid, code: '424242' }),
  404,
  20404,
)
const v3 = await service.verifications.create({ to: phone, channel: 'sms' })
for (let i = 0; i < 5; i++)
  ok(
    'wrong ' + i,
    (await service.verificationChecks.create({ to: phone, code: '00000' + i })).status === 'pending',
  )
await fails('sixth check', () => service.verificationChecks.create({ to: phone, code: '424242' }), 429, 60202)
ok(
  'readable after the fifth',
  (await service.verifications(v3.sid).fetch()).status === 'max_attempts_reached',
)
await fails('bad number', () => service.verifications.create({ to: '+1', channel: 'sms' }), 400, 60200)
await fails('email', () => service.verifications.create({ to: 'a@b.c', channel: 'email' }), 400, 60200)
await fails(
  'custom code',
  () => service.verifications.create({ to: phone, channel: 'sms', customCode: '1234' }),
  403,
  60204,
)
await fails(
  'approved without a code',
  () => service.verifications(v2.sid).update({ status: 'approved' }),
  400,
  60200,
)
await fails('unknown sid', () => service.verifications('VE' + '0'.repeat(32)).fetch(), 404, 20404)
await fails(
  'another service',
  () => client.verify.v2.services('VA' + '0'.repeat(32)).verifications.create({ to: phone, channel: 'sms' }),
  404,
  20404,
)
const thief = twilio(process.env.TWILIO_ACCOUNT_SID, '0'.repeat(96))
thief.verify.baseUrl = process.env.OTPD_URL
await fails('wrong token', () => thief.verify.v2.services(VA).fetch(), 401, 20003)
{
  const p = '+14155550' + (100 + Math.floor(Math.random() * 100))
  const a = await service.verifications.create({ to: p, channel: 'sms' })
  const b = await service.verifications.create({ to: p, channel: 'call' })
  ok(
    'same sid on a second send',
    a.sid === b.sid && b.sendCodeAttempts.length === 2 && b.channel === 'call',
    b,
  )
  for (let i = 0; i < 2; i++) await service.verifications.create({ to: p, channel: 'sms' })
  await fails('fifth message', () => service.verifications.create({ to: p, channel: 'sms' }), 429, 60203)
}
{
  const { verificationAttempts, verificationAttemptsSummary, safelist } = client.verify.v2
  const sids = (attempts) => attempts.map(({ sid }) => sid)
  const every = await verificationAttempts.list({ pageSize: 2 })
  const [newest] = every
  ok(
    'attempts, over many pages',
    every.length === 7 && new Set(sids(every)).size === every.length,
    every.length,
  )
  ok('a limit', (await verificationAttempts.list({ limit: 3 })).length === 3)
  ok(
    'an attempt',
    newest.serviceSid === VA && newest.dateCreated instanceof Date && newest.channelData.country === 'US',
    newest,
  )
  const same = await verificationAttempts(newest.sid).fetch()
  ok(
    'an attempt by its sid',
    same.sid === newest.sid && same.verificationSid === newest.verificationSid,
    same,
  )
  const of = await verificationAttempts.list({ verificationSid: newest.verificationSid })
  ok(
    'attempts of a verification',
    of.length === 4 && of.map(({ channel }) => channel).join() === 'sms,sms,call,sms',
    of,
  )
  const converted = await verificationAttempts.list({ verificationSid: v.sid, status: 'converted' })
  ok('converted', converted.length === 1 && converted[0].conversionStatus === 'converted', converted)
  const day = 86_400_000
  const filtered = await verificationAttempts.list({
    'channelData.to': newest.channelData.to,
    channel: 'call',
    country: 'US',
    verifyServiceSid: VA,
    dateCreatedAfter: new Date(Date.now() - day),
    dateCreatedBefore: new Date(Date.now() + day),
  })
  ok(
    'every filter',
    filtered.length > 0 &&
      filtered.every(
        ({ channel, channelData }) => channel === 'call' && channelData.to === newest.channelData.to,
      ),
    filtered,
  )
  const others = await verificationAttempts.list({ verifyServiceSid: 'VA' + '0'.repeat(32) })
  ok('none of another service', others.length === 0, others)
  await fails('unknown attempt', () => verificationAttempts('VL' + '0'.repeat(32)).fetch(), 404, 20404)
  const summary = await verificationAttemptsSummary().fetch({
    verifyServiceSid: VA,
    country: 'US',
    dateCreatedAfter: new Date(Date.now() - day),
    dateCreatedBefore: new Date(Date.now() + day),
  })
  ok(
    'summary',
    summary.totalAttempts === every.length &&
      summary.totalConverted === 1 &&
      summary.totalUnconverted === every.length - 1 &&
      Math.abs(summary.conversionRatePercentage - 100 / every.length) < 0.01,
    summary,
  )
  await fails('not in the safe list', () => safelist(phone).fetch(), 404, 20404)
  await fails('the safe list is read only', () => safelist.create({ phoneNumber: phone }), 403, 20403)
  await fails('the safe list is read only', () => safelist(phone).remove(), 403, 20403)
}
process.stdout.write(`${good} of ${all} hold\n`)
process.exit(good === all ? 0 : 1)

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { writeLastBackup } from '../../src/backups/last-backup.ts'
import { emailAlerts } from '../../src/delivery/alerts/email-alerts.ts'
import { webhookAlerts } from '../../src/delivery/alerts/http-alerts.ts'
import { createProviderHttp } from '../../src/delivery/kit/http-client.ts'
import { noGuardChanges } from '../../src/domain/store/guard.ts'
import { alertKinds, type AlertKind } from '../../src/domain/model/alert.ts'
import type { Clock } from '../../src/domain/model/clock.ts'
import { createNoticeSender } from '../../src/domain/upkeep/alert-notices.ts'
import { recordObservation } from '../../src/domain/upkeep/alerts.ts'
import { createNodeObservers, createSharedObservers } from '../../src/server/alert-observations.ts'
import type { StoredNode } from '../../src/server/storage.ts'
import { dayMs, hourMs, minuteMs } from '../../src/shared/durations.ts'
import { testClock } from '../helpers/clock.ts'
import { requireConfig, load } from '../helpers/config.ts'
import { describeEachDatabase } from '../helpers/databases.ts'
import { createTestService, type TestService } from '../helpers/service.ts'
import { startSmtpServer } from '../helpers/smtp-server.ts'
import { hasOpenssl, makeCertificate, startReceiver } from '../helpers/webhook-receiver.ts'

// 24 hours in steps of ten minutes with every cause of an alert, three nodes that do the same at once, a restart of all of
// them in the middle of each fault, and destinations that fail for a while: a real SMTP server, and a real HTTP receiver.

const stepMs = 10 * minuteMs

describeEachDatabase('a day with every fault', (database) => {
  let service: TestService
  let folder: string
  let smtp: Awaited<ReturnType<typeof startSmtpServer>>
  let isReceiverDown = false
  let receiver: Awaited<ReturnType<typeof startReceiver>>
  beforeAll(async () => {
    service = await createTestService({ database: database() })
    folder = mkdtempSync(join(tmpdir(), 'otpd-alerts-'))
    smtp = await startSmtpServer()
    receiver = await startReceiver(() => new Response(null, { status: isReceiverDown ? 503 : 200 }))
  })
  afterAll(async () => {
    await service.dispose()
    await smtp.stop()
    receiver.stop()
    rmSync(folder, { recursive: true })
  })

  test.skipIf(!hasOpenssl)(
    'sends one message at the beginning of each, one at the end, and none else',
    async () => {
      const { store, clock } = service
      const certificates = {
        wrong: makeCertificate('other.example'),
        right: makeCertificate('otp.example.com'),
      }
      const certFile = join(folder, 'cert.pem')
      const keyFile = join(folder, 'key.pem')
      const writePair = ({ cert, key }: { cert: string; key: string }) => {
        writeFileSync(certFile, cert)
        writeFileSync(keyFile, key, { mode: 0o600 })
      }
      mkdirSync(join(folder, 'data'))
      const dataDir = join(folder, 'data')
      const backupFolder = join(folder, 'backups')
      mkdirSync(backupFolder)
      writePair(certificates.right)
      const config = {
        ...requireConfig(load()),
        backup: {
          ...requireConfig(load()).backup,
          everyMs: hourMs,
          to: { kind: 'folder' as const, path: backupFolder },
        },
        publicUrl: 'https://otp.example.com',
        tls: {
          certificate: { kind: 'files' as const, certFile, keyFile },
          httpListen: null,
          hstsSeconds: 0,
        },
      }
      const developer = await service.createDeveloper()
      const application = await service.createApplication(developer)
      const endpoint = await service.request<{ id: string }>('POST', '/v1/webhooks', {
        as: developer,
        body: { appId: application.id, url: 'https://hooks.example.com', events: ['*'] },
      })

      // The rest of the world that the observers see.
      const start = clock.now()
      // The certificates are made now; the clock of the test stands elsewhere.
      const wall = testClock(Date.now())
      let wallOffsetMs = 0
      let free = 50_000_000_000
      const nodes: StoredNode[] = [{ name: 'b', seenAt: start, isAlive: true }]

      const http = createProviderHttp()
      const needs = { http, server: () => 'https://otp.example.com' }
      const mail = {
        to: 'ops@example.com',
        from: 'otpd@example.com',
        host: 'localhost',
        port: String(smtp.port),
      }
      const send = {
        email: emailAlerts.create({ ...mail, username: 'otpd', password: 'secret', ca: smtp.ca }, needs),
        webhook: webhookAlerts.create({ url: receiver.url }, needs),
      }
      const destinations = [
        { name: 'email', min: 'warning' },
        { name: 'webhook', min: 'warning' },
      ] as const
      const startNode = () => {
        const shared = createSharedObservers({
          store,
          clock,
          guardSettings: service.services.guard.settings,
          providers: () => ['main', 'spare'],
          listNodes: async () => nodes,
          nextTurn: async () => {},
        })
        // Certificates and backups are compared with the time of day, the clock check with both.
        const own = createNodeObservers({
          config,
          dataDir,
          clock,
          wall: { now: () => wall.now() },
          isShared: false,
          node: '',
          world: { freeBytes: () => free },
        }).filter(({ kind }) => kind !== 'clock')
        const clockOnly = createNodeObservers({
          config,
          dataDir,
          clock,
          wall: { now: () => clock.now() + wallOffsetMs },
          isShared: false,
          node: '',
          world: { freeBytes: () => free },
        }).filter(({ kind }) => kind === 'clock')
        const { sendDue } = createNoticeSender({
          store,
          now: clock.now,
          destinations: () => destinations.map(({ name }) => name),
          send: async (notice) => ({
            failure: await send[notice.destination === 'email' ? 'email' : 'webhook'](
              notice,
              AbortSignal.timeout(10_000),
            ),
          }),
          onFailed() {},
          onDropped() {
            throw new Error('a notice was dropped')
          },
        })
        return async () => {
          for (const { kind, observe, describe } of [...shared, ...own, ...clockOnly]) {
            const causes = await observe()
            await recordObservation(
              store,
              { source: 'installation', kinds: [kind], causes, describe },
              destinations,
              clock.now(),
            )
          }
          await sendDue()
        }
      }

      const today = () => Math.floor(clock.now() / dayMs)
      const count = (day: number, sent: number, verified: number) =>
        store.write(async (tx) =>
          tx.analytics.addBreakdown([
            {
              key: {
                developerId: developer.developer.id,
                appId: application.id,
                day,
                country: 'NL',
                channel: 'sms',
                provider: 'main',
              },
              counts: { sent, verified },
            },
          ]),
        )
      for (let day = 1; day <= 7; day++) await count(today() - day, 100, 60)
      const circuit = { node: 'local', name: 'main', failure: 'provider_down' as const }
      const setEndpoint = (status: 'enabled' | 'disabled') =>
        service.request('PATCH', `/v1/webhooks/${endpoint.data.id}`, { as: developer, body: { status } })
      /** Each fault, at the hour when it begins and at the one when it is mended. */
      const events: Array<[hour: number, change: () => unknown]> = [
        [
          1,
          () => store.write((tx) => tx.providerCircuits.put({ ...circuit, openUntil: clock.now() + dayMs })),
        ],
        [3, () => store.write((tx) => tx.providerCircuits.remove(circuit))],
        [2, () => void (free = 500_000_000)],
        [5, () => void (free = 50_000_000_000)],
        [3, () => writePair(certificates.wrong)],
        [6, () => writePair(certificates.right)],
        [4, () => void (wallOffsetMs = 20_000)],
        [7, () => void (wallOffsetMs = 0)],
        [5, () => void nodes.splice(0, 1, { name: 'b', seenAt: clock.now(), isAlive: false })],
        [9, () => void nodes.splice(0, 1, { name: 'b', seenAt: clock.now(), isAlive: true })],
        [
          6,
          () =>
            store.write((tx) =>
              tx.webhookEndpoints.disable(
                endpoint.data.id,
                'gone',
                { url: 'https://hooks.example.com', failingSinceBefore: undefined },
                clock.now(),
              ),
            ),
        ],
        [10, () => setEndpoint('enabled')],
        [7, () => rmSync(backupFolder, { recursive: true })],
        [11, () => mkdirSync(backupFolder)],
        [
          8,
          () =>
            store.write((tx) =>
              tx.guard.apply({
                ...noGuardChanges(),
                rows: new Map([
                  [
                    `${developer.developer.id} DE`,
                    {
                      windows: { unverified: [Math.floor(clock.now() / hourMs), 70] },
                      alertedAt: clock.now(),
                      until: today() + 2,
                    },
                  ],
                ]),
              }),
            ),
        ],
        [9, () => count(today(), 100, 10)],
        [11, () => count(today(), 400, 300)],
        [8, () => void (isReceiverDown = true)],
        [10, () => void (isReceiverDown = false)],
      ]

      let running = [startNode(), startNode(), startNode()]
      for (let step = 0; step * stepMs < dayMs; step++) {
        const hour = (step * stepMs) / hourMs
        for (const [at, change] of events) if (at === hour) await change()
        writeLastBackup(dataDir, { file: 'a', at: wall.now(), bytes: 1 })
        // All nodes end and start again, every hour and a half.
        if (step % 9 === 8) running = [startNode(), startNode(), startNode()]
        await Promise.all(running.map((observeAndSend) => observeAndSend()))
        clock.advance(stepMs)
        wall.advance(stepMs)
      }

      const expected = alertKinds.flatMap((kind) => [`firing ${kind}`, `resolved ${kind}`]).toSorted()
      const posted = receiver.received.map(({ headers, body }) => ({
        id: headers['webhook-id'],
        ...JSON.parse(body),
      }))
      // A receiver that fails gets a notice again, with the same id.
      const unique = new Map(posted.map((one) => [one.id, one]))
      const listed = [...unique.values()].map(
        ({ type, data }) => `${type.replace('alert.', '')} ${data.kind}`,
      )
      expect(listed.toSorted()).toEqual(expected)
      expect(posted.length).toBeGreaterThan(expected.length)
      const subjects = smtp.received.map(
        ({ source }) => /^Subject: (.*(?:\r\n .*)*)/m.exec(source)?.[1] ?? '',
      )
      expect(subjects.filter((text) => !text.includes('Resolved after'))).toHaveLength(alertKinds.length)
      expect(subjects.filter((text) => text.includes('Resolved after'))).toHaveLength(alertKinds.length)
      const ends = posted.filter(({ type }) => type === 'alert.resolved').map(({ data }) => data.message)
      expect(ends).toContain('disk space: 50.0 GB free')
      expect(ends).toContain('provider main: circuit closed')
      expect(ends).toContain('nodes: b runs')
      expect(ends).toContain('guard alert: DE: no more unverified messages than usual')
      expect(ends.filter((text: string) => text.startsWith('backups: the last one is '))).toHaveLength(1)
      const remedies = posted.map(({ type, data }) => [type === 'alert.resolved', data.remedy === ''])
      expect(remedies.filter(([isResolved, isEmpty]) => isResolved !== isEmpty)).toEqual([])
      expect(await store.read.alerts.list()).toEqual([])
      expect(await store.read.alerts.listNotices()).toEqual([])
      http.close()
    },
    240_000,
  )

  const observerOf = (wanted: AlertKind, clock: Clock = service.clock) =>
    createSharedObservers({
      store: service.store,
      clock,
      guardSettings: service.services.guard.settings,
      providers: () => ['main', 'spare'],
      listNodes: async () => [],
      nextTurn: async () => {},
    }).find(({ kind }) => kind === wanted)

  test('does not report a provider whose pause is over', async () => {
    const { store, clock } = service
    const providers = observerOf('provider')
    const circuit = { node: 'local', name: 'spare', openUntil: clock.now() + 1000 }
    const observe = async (failure: 'throttled' | 'provider_down') => {
      await store.write((tx) => tx.providerCircuits.put({ ...circuit, failure }))
      return (await providers?.observe())?.length
    }
    expect(await observe('throttled')).toBe(1)
    clock.advance(1000)
    expect([await observe('throttled'), await observe('provider_down')]).toEqual([0, 1])
    await store.write((tx) => tx.providerCircuits.remove(circuit))
  })

  test('reports a daily limit of the installation while it refuses messages', async () => {
    const { store, clock } = service
    const guard = observerOf('guard')
    const decide = (counts: { flagged: number; blocked: number }) => {
      const decision = { hour: Math.floor(clock.now() / hourMs), rule: 'SPEND_DAILY', country: 'DE' } as const
      const decisions = new Map([['DE', { ...decision, ...counts }]])
      return store.write((tx) => tx.guard.apply({ ...noGuardChanges(), decisions }))
    }
    const observe = async () =>
      (await guard?.observe())
        ?.filter(({ subject }) => subject === 'SPEND_DAILY')
        .map(({ severity }) => severity)
    await decide({ flagged: 1, blocked: 0 })
    expect(await observe()).toEqual([])
    await decide({ flagged: 0, blocked: 1 })
    expect(await observe()).toEqual(['critical'])
    clock.advance(hourMs)
    expect(await observe()).toEqual([])
  })

  test.each([
    ['guard', 'DE', 'guard alert: DE: no more unverified messages than usual'],
    ['guard', 'pool', 'guard alert: many countries: no more unverified messages than usual'],
    ['guard', 'relays', 'guard alert: codes of other systems: no more unverified messages than usual'],
    ['guard', 'TOTAL_DAILY', 'daily limit: guard.totalPerDay refuses no codes'],
    ['conversion', 'DE', 'conversion: DE: no longer less than half of the week before'],
    ['webhook', 'whk_1', 'webhook: endpoint whk_1 is no longer disabled'],
  ] as const)('says of a %s alert of %s that is over: %s', (kind, subject, expected) => {
    expect(observerOf(kind)?.describe?.(subject)).toBe(expected)
  })

  test('does not judge a day before its codes can be entered', async () => {
    const { store } = service
    const owner = await service.createDeveloper()
    const { id: appId } = await service.createApplication(owner)
    const today = 20_000
    const key = {
      developerId: owner.developer.id,
      appId,
      country: 'BE',
      channel: 'sms',
      provider: 'main',
    } as const
    await store.write(async (tx) =>
      tx.analytics.addBreakdown(
        Array.from({ length: 8 }, (_, index) => ({
          key: { ...key, day: today - index },
          counts: { sent: 60, verified: index === 0 ? 0 : 50 },
        })),
      ),
    )
    const observe = (minute: number) =>
      observerOf('conversion', testClock(today * dayMs + minute * minuteMs))?.observe()
    expect(await observe(1)).toEqual([])
    expect(await observe(9)).toEqual([])
    const [cause] = (await observe(10)) ?? []
    expect(cause?.message).toBe(
      'conversion: BE: 0 % of the codes of 2024-10-04 were verified, 83 % in the week before',
    )
  })
})

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { settings } from '../../src/config/settings.ts'
import { runToEnd, startServer, type RunningServer } from '../helpers/binary.ts'
import { findProgram } from '../helpers/external-program.ts'
import { codeBlocks, readDocument } from '../helpers/guide-blocks.ts'
import { parseExposition, type Sample } from '../helpers/prometheus-exposition.ts'
import { startProviderServer, type ProviderServer } from '../helpers/provider-server.ts'
import { findUnusedPort } from '../helpers/unused-port.ts'
import { logIn, makeServerHome, sendOtp } from '../helpers/webhook-client.ts'

/** The recipes in `.packaging/recipes`, by the programs that they are for and against the compiled server. */

const recipes = join(import.meta.dir, '../../.packaging/recipes')
const read = (name: string) => readFileSync(join(recipes, name), 'utf8')
const run = (...command: string[]) =>
  runToEnd(command, { cwd: recipes, env: { PATH: process.env.PATH ?? '', HOME: tmpdir() } })

/** Expressions of the Grafana dashboard, with its variable filled in. */
const dashboard = (() => {
  const { panels }: { panels: Array<{ title: string; targets: Array<{ expr: string }> }> } = JSON.parse(
    read('grafana.json'),
  )
  const expressions = panels.flatMap(({ targets }) =>
    targets.map(({ expr }) => expr.replaceAll('$job', 'otpd')),
  )
  return { panels, expressions }
})()

/** Runs a test if the program is installed, and says so if not. */
function testWith(program: string, name: string, check: () => Promise<void>) {
  const isMissing = findProgram(program) === null
  if (isMissing) process.stderr.write(`Skipped: ${name}. It needs ${program}.\n`)
  test.skipIf(isMissing)(name, check)
}

describe('the Prometheus rules and the dashboard', () => {
  testWith('promtool', 'pass promtool, and their own tests', async () => {
    expect(await run('promtool', 'check', 'rules', 'prometheus-rules.yml')).toMatchObject({ exitCode: 0 })
    const tested = await run('promtool', 'test', 'rules', 'prometheus-rules.test.yml')
    expect(tested).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('SUCCESS') })
  })

  testWith('promtool', 'are valid expressions in every panel', async () => {
    expect(dashboard.panels.length).toBeGreaterThan(10)
    const groups = dashboard.expressions.map((expr, index) => ({ record: `panel:${index}`, expr }))
    const folder = mkdtempSync(join(tmpdir(), 'otpd-grafana-'))
    writeFileSync(
      join(folder, 'panels.json'),
      JSON.stringify({ groups: [{ name: 'panels', rules: groups }] }),
    )
    expect(await run('promtool', 'check', 'rules', join(folder, 'panels.json'))).toMatchObject({
      exitCode: 0,
    })
    rmSync(folder, { recursive: true })
  })

  describe('name what a server with traffic shows:', () => {
    let server: RunningServer
    let provider: ProviderServer
    let text: string
    let samples: Sample[]
    beforeAll(async () => {
      provider = startProviderServer()
      provider.setResponse(200, { id: 'm1' })
      const home = makeServerHome()
      const [, config = ''] = home.args
      const gateway = `kind = "http"\nurl = "${provider.url}/"\nsecretEnv = "GATEWAY_SECRET"\n`
      writeFileSync(config, `${readFileSync(config, 'utf8')}[[providers]]\nname = "main"\n${gateway}`)
      const metrics = `127.0.0.1:${await findUnusedPort()}`
      const env = {
        ...home.env,
        OTPD_METRICS_LISTEN: metrics,
        GATEWAY_SECRET: `whsec_${btoa('x'.repeat(32))}`,
      }
      server = await startServer({ ...home, env })
      const client = await logIn(server.url)
      const app = await client.createApplication('metrics', 'live')
      const requestId = await sendOtp(server.url, app, '+31612345678')
      const [code = ''] = /\b\d{6}\b/.exec(provider.calls[0]?.body ?? '') ?? []
      const post = (path: string, body: object) =>
        fetch(`${server.url}${path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...app.headers },
          body: JSON.stringify(body),
        })
      expect((await post('/v1/otp/verify', { requestId, code })).status).toBe(200)
      text = await (await fetch(`http://${metrics}/metrics`)).text()
      samples = parseExposition(text)
    })
    afterAll(async () => {
      await server.stop()
      await provider.stop()
    })

    const expressions = `${read('prometheus-rules.yml')}\n${dashboard.expressions.join('\n')}`
    const selectors = [...expressions.matchAll(/\b((?:otpd|http|process)_\w+)\{([^}]*)\}/g)]

    test.each([...new Set(selectors.map(([, name = '']) => name))])('%s', (name) => {
      const family = name.replace(/_(bucket|count|sum)$/, '')
      expect(text).toContain(`\n# TYPE ${family} `)
    })

    test('labels with their values', () => {
      // The counter of alerts has no series before the first one.
      const labelled = selectors.filter(([, , labels = '']) => labels.includes(','))
      expect(labelled.length).toBeGreaterThan(3)
      for (const [selector, name, labels = ''] of labelled) {
        const wanted = [...labels.matchAll(/(\w+)(=~|!=|=)"([^"]*)"/g)].filter(([, label]) => label !== 'job')
        const found = samples.some(
          (sample) =>
            sample.name === name &&
            wanted.every(
              ([, label = '', operator, value]) =>
                label in sample.labels && (operator !== '=' || sample.labels[label] === value),
            ),
        )
        expect([selector, found]).toEqual([selector, true])
      }
    })
  })
})

describe('the manifest for Kubernetes', () => {
  const manifest = read('kubernetes.yaml')
  const guide = readDocument('src/docs/kubernetes.md')
  const variables = Object.fromEntries(
    [...manifest.matchAll(/\{ name: (OTPD_\w+), value: '?([^' }]*)'? \}/g)].map(([, name, value]) => [
      name,
      value,
    ]),
  )

  testWith('kubernetes-validate', 'is valid, and a misspelt field is not', async () => {
    expect(await run('kubernetes-validate', '--strict', 'kubernetes.yaml')).toMatchObject({ exitCode: 0 })
    const folder = mkdtempSync(join(tmpdir(), 'otpd-kubernetes-'))
    const path = join(folder, 'wrong.yaml')
    writeFileSync(path, manifest.replace('enableServiceLinks', 'enableServiceLink'))
    expect((await run('kubernetes-validate', '--strict', path)).exitCode).not.toBe(0)
    rmSync(folder, { recursive: true })
  })

  test('has the resources and fields that the guide names', () => {
    const kubectl = codeBlocks(guide, 'text').join('')
    expect(manifest).toContain('secretName: otpd-master-key,')
    expect(kubectl).toContain('secret generic otpd-master-key --from-file=master.key\n')
    expect(manifest).toMatch(/^kind: StatefulSet\nmetadata:\n {2}name: otpd$/m)
    const targets = [...kubectl.matchAll(/ (statefulset\/\S+|otpd-0)/g)].map(([, target]) => target)
    expect(new Set(targets)).toEqual(new Set(['statefulset/otpd', 'otpd-0']))
    const [, manifestPart = ''] = guide.split('\n### What to change\n')
    const fields = [...manifestPart.matchAll(/^\| `([\w.]+)`/gm)].map(([, field = '']) => field.split('.')[0])
    expect(fields.length).toBeGreaterThan(3)
    for (const field of fields) expect(manifest).toMatch(new RegExp(`\\b${field}\\b`))
  })

  test('sets only variables that otpd has, and asks paths that it answers', async () => {
    const known = new Set<string>(Object.values(settings).map(({ variable }) => variable))
    expect(Object.keys(variables).length).toBeGreaterThan(4)
    for (const name of Object.keys(variables)) expect([name, known.has(name)]).toEqual([name, true])

    const home = makeServerHome()
    const key = join(home.home, 'master.key')
    const [makeKey = ''] = codeBlocks(guide, 'sh')
    const made = await runToEnd(['sh', '-ec', makeKey], { cwd: home.home })
    expect(made.exitCode).toBe(0)
    chmodSync(key, 0o440)
    const metricsPort = await findUnusedPort()
    const server = await startServer({
      ...home,
      args: ['--log-format', 'json'],
      env: {
        ...variables,
        ...home.env,
        OTPD_LISTEN: '127.0.0.1:0',
        OTPD_METRICS_LISTEN: `127.0.0.1:${metricsPort}`,
        OTPD_MASTER_KEY_FILE: key,
        OTPD_DATA_DIR: join(home.home, 'data'),
      },
    })
    const paths = [...manifest.matchAll(/path: (\/\S+),/g)].map(([, path = '']) => path)
    expect(paths).toHaveLength(3)
    for (const path of paths) expect((await fetch(`${server.url}${path}`)).status).toBe(200)
    await server.stop()
    rmSync(home.home, { recursive: true })
  })
})

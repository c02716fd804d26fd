import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { packChart, updateChartIndex } from '../../cli/release/chart.ts'
import { settings } from '../../src/config/settings.ts'
import { runToEnd } from '../helpers/binary.ts'
import { findProgram } from '../helpers/external-program.ts'
import { codeBlocks, readDocument } from '../helpers/guide-blocks.ts'

/** The chart for Helm, as a release packs it: rendered by helm, and checked against the schemas of Kubernetes. */

const root = resolve(import.meta.dir, '../..')
const version = '1.2.3'
const isMissing = findProgram('helm') === null
if (isMissing) process.stderr.write('Skipped: the rendered chart. It needs helm.\n')
const validator = findProgram('kubernetes-validate')

let folder: string
const chart = () => join(folder, 'chart.tgz')
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'otpd-chart-'))
  writeFileSync(chart(), packChart(root, version, 1_767_225_600).content)
})
afterAll(() => rmSync(folder, { recursive: true }))

const helm = (...args: string[]) =>
  runToEnd(['helm', ...args], {
    cwd: folder,
    env: { PATH: process.env.PATH ?? '', HOME: folder, HELM_CACHE_HOME: join(folder, 'cache') },
  })

const required = { image: { repository: 'registry.example.com/otpd' }, publicUrl: 'https://otp.example.com' }
type Values = Record<string, unknown>
type Resource = {
  kind: string
  metadata: { name: string; annotations?: object }
  spec: Record<string, unknown>
}

async function render(values: Values) {
  writeFileSync(join(folder, 'values.yaml'), JSON.stringify({ ...required, ...values }))
  // Otherwise helm takes a version of Kubernetes that depends on how it was built.
  return await helm('template', 'otpd', chart(), '--values', 'values.yaml', '--kube-version', '1.31.0')
}

/** Renders the chart. @returns its resources by kind */
async function resources(values: Values): Promise<Record<string, Resource>> {
  const { exitCode, stdout, stderr } = await render(values)
  expect([exitCode, stderr]).toEqual([0, ''])
  if (validator !== null) {
    writeFileSync(join(folder, 'rendered.yaml'), stdout)
    const checked = await runToEnd([validator, '--strict', 'rendered.yaml'], { cwd: folder, env: {} })
    expect([checked.exitCode, checked.stdout]).toEqual([0, expect.any(String)])
  }
  const all = stdout.split(/^---$/m).map((text) => Bun.YAML.parse(text) as Resource | null)
  return Object.fromEntries(all.flatMap((one) => (one === null ? [] : [[one.kind, one]])))
}

/** Returns the pod of a resource, and its only container. */
function podOf(resource: Resource | undefined) {
  const pod = resource?.spec['template'] as { spec: Pod } | undefined
  const [container] = pod?.spec.containers ?? []
  if (pod === undefined || container === undefined) throw new Error('There is no pod.')
  const variables = Object.fromEntries(container.env.map(({ name, value }) => [name, value]))
  return { spec: pod.spec, container, variables }
}
type Pod = Record<string, unknown> & { containers: Container[] }
type Container = Record<string, unknown> & { env: Array<{ name: string; value?: string }>; image: string }

const recipe = () =>
  readFileSync(join(root, '.packaging/recipes/kubernetes.yaml'), 'utf8')
    .split(/^---$/m)
    .map((text) => Bun.YAML.parse(text) as Resource)

describe.skipIf(isMissing)('the chart', () => {
  test('passes helm lint', async () => {
    writeFileSync(join(folder, 'values.yaml'), JSON.stringify(required))
    const { exitCode, stdout } = await helm('lint', '--strict', chart(), '--values', 'values.yaml')
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining('0 chart(s) failed')])
  })

  test('renders the pod of the manifest that the guide has', async () => {
    const { StatefulSet, Service, ...others } = await resources({ trustedProxies: '10.0.0.0/8' })
    expect(Object.keys(others)).toEqual([])
    const [service, statefulSet] = recipe()
    const { spec, container } = podOf(StatefulSet)
    const expected = podOf(statefulSet)
    const sorted = (list: Array<{ name: string }>) => list.toSorted((a, b) => a.name.localeCompare(b.name))
    expect({ ...spec, containers: [] }).toEqual({ ...expected.spec, containers: [] })
    expect({ ...container, env: sorted(container.env), image: '', imagePullPolicy: '' }).toEqual({
      ...expected.container,
      env: sorted(expected.container.env),
      image: '',
      imagePullPolicy: '',
    })
    expect(container.image).toBe(`registry.example.com/otpd:${version}`)
    expect(StatefulSet?.spec['volumeClaimTemplates']).toEqual(statefulSet?.spec['volumeClaimTemplates'])
    expect(Service?.spec['ports']).toEqual(service?.spec['ports'])
  })

  test('is a Deployment on PostgreSQL, whose tables a Job migrates first', async () => {
    const postgres = { secret: 'otpd-database', ownerSecret: 'otpd-owner' }
    const { Deployment, Job, PodDisruptionBudget, StatefulSet } = await resources({ replicas: 3, postgres })
    expect(StatefulSet).toBeUndefined()
    expect(Deployment?.spec['replicas']).toBe(3)
    expect(PodDisruptionBudget?.spec).toMatchObject({ maxUnavailable: 1 })
    const { spec, variables } = podOf(Deployment)
    expect(variables).toMatchObject({
      OTPD_DATABASE_URL_FILE: '/run/secrets/otpd-database/url',
      OTPD_NO_MIGRATE: '1',
    })
    expect(variables).not.toHaveProperty('OTPD_DATA_DIR')
    expect(spec['volumes']).toContainEqual({
      name: 'database',
      secret: expect.objectContaining({ secretName: 'otpd-database' }),
    })
    expect(Job?.metadata.annotations).toMatchObject({ 'helm.sh/hook': 'pre-install,pre-upgrade' })
    expect(podOf(Job).container['args']).toEqual(['migrate', 'up'])
    expect(podOf(Job).spec['securityContext']).toEqual(spec['securityContext'])

    const single = await resources({ postgres: { secret: 'otpd-database' } })
    expect(Object.keys(single).toSorted()).toEqual(['Deployment', 'Service'])
    expect(podOf(single['Deployment']).variables).not.toHaveProperty('OTPD_NO_MIGRATE')
  })

  test('has a configuration, files with secrets, variables and an Ingress if they are asked for', async () => {
    const { ConfigMap, Ingress, Service, StatefulSet } = await resources({
      config: '[guard]\ncountries = ["DE"]\n',
      secretFiles: 'providers',
      env: [{ name: 'OTPD_LOG_LEVEL', value: 'debug' }],
      podAnnotations: { team: 'identity' },
      nodeSelector: { disk: 'ssd' },
      tolerations: [{ key: 'otp', operator: 'Exists' }],
      imagePullSecrets: [{ name: 'registry' }],
      service: { type: 'LoadBalancer', annotations: { zone: 'a' } },
      ingress: { enabled: true, className: 'nginx', tlsSecret: 'otp-tls', annotations: { buffering: 'off' } },
    })
    expect(ConfigMap).toMatchObject({ data: { 'otpd.toml': '[guard]\ncountries = ["DE"]\n' } })
    const { spec, variables, container } = podOf(StatefulSet)
    expect(variables['OTPD_LOG_LEVEL']).toBe('debug')
    expect(container['volumeMounts']).toContainEqual({
      name: 'config',
      mountPath: '/etc/otpd',
      readOnly: true,
    })
    expect(spec).toMatchObject({ nodeSelector: { disk: 'ssd' }, imagePullSecrets: [{ name: 'registry' }] })
    expect(Ingress?.spec).toMatchObject({
      ingressClassName: 'nginx',
      tls: [{ hosts: ['otp.example.com'], secretName: 'otp-tls' }],
      rules: [{ host: 'otp.example.com' }],
    })
    // Metrics are for the cluster only.
    expect(Service?.spec['ports']).toEqual([{ name: 'http', port: 80, targetPort: 'http' }])
  })

  test('refuses values that are wrong, misspelt or contradict each other', async () => {
    const cases: Array<[Values, string]> = [
      [{ image: {} }, 'image.repository is missing'],
      [{ publicUrl: '' }, 'publicUrl is missing'],
      [{ publicUrl: 'otp.example.com' }, 'publicUrl'],
      [{ replicas: 2 }, 'More need PostgreSQL'],
      [{ replicas: 0 }, 'replicas'],
      [{ postgres: { ownerSecret: 'owner' } }, 'postgres.ownerSecret needs postgres.secret'],
      [{ trustedProxy: '10.0.0.0/8' }, 'trustedProxy'],
    ]
    for (const [values, message] of cases) {
      const { exitCode, stderr } = await render(values)
      expect([exitCode, stderr]).toEqual([1, expect.stringContaining(message)])
    }
  })

  test('can be installed by the name of its repository', async () => {
    const out = join(folder, 'releases')
    mkdirSync(join(out, version), { recursive: true })
    mkdirSync(join(out, '0.1.0'))
    writeFileSync(join(out, version, `otpd-chart-${version}.tgz`), readFileSync(chart()))
    updateChartIndex(root, out, [version, '0.1.0'])
    const web = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: (request) => new Response(Bun.file(join(out, new URL(request.url).pathname))),
    })
    try {
      expect((await helm('repo', 'add', 'otpd', `http://127.0.0.1:${web.port}`)).exitCode).toBe(0)
      expect((await helm('search', 'repo', 'otpd')).stdout).toMatch(
        /otpd\/otpd\s+1\.2\.3\s+1\.2\.3\s+One-time/,
      )
      const shown = await helm('show', 'chart', 'otpd/otpd')
      expect(shown.stdout).toContain('version: 1.2.3\n')
    } finally {
      await web.stop(true)
    }
  })
})

test('the chart sets only variables that otpd has, and the guide names only values that it has', () => {
  const templates = ['_helpers.tpl', 'migration.yaml'].map((name) =>
    readFileSync(join(root, '.packaging/helm/templates', name), 'utf8'),
  )
  const known = new Set<string>(Object.values(settings).map(({ variable }) => variable))
  // The comment on service links.
  known.add('OTPD_PORT')
  for (const [name] of templates.join('').matchAll(/\bOTPD_\w+/g))
    expect([name, known.has(name)]).toEqual([name, true])

  const values = Bun.YAML.parse(readFileSync(join(root, '.packaging/helm/values.yaml'), 'utf8')) as Values
  const [guide = ''] = readDocument('src/docs/kubernetes.md').split('\n## Without Helm\n')
  const names = [...guide.matchAll(/--set ([\w.]+)=/g), ...guide.matchAll(/^\| `([\w.]+)` +\|/gm)].map(
    ([, name]) => name,
  )
  expect(names.length).toBeGreaterThan(8)
  const find = (path = '') =>
    path.split('.').reduce<unknown>((value, part) => (value as Values | undefined)?.[part], values)
  for (const name of names) expect([name, find(name) !== undefined]).toEqual([name, true])
  expect(codeBlocks(guide, 'text').join('')).toContain('helm install otpd otpd/otpd')
})

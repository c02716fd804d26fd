import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { packArchive, type ArchiveFile } from './archive.ts'
import { sha256 } from './checksums.ts'

/** Name of the chart's file: `otpd-X.Y.Z.tgz`, which Helm would choose, is the package for npm. */
const fileName = (version: string) => `otpd-chart-${version}.tgz`

/** Packs the chart for Helm in `.packaging/helm`, with the version of the release. */
export function packChart(root: string, version: string, seconds: number): ArchiveFile {
  const folder = join(root, '.packaging/helm')
  const files = [...new Bun.Glob('**/*').scanSync(folder)].toSorted().map((name) => {
    const content = readFileSync(join(folder, name))
    return {
      name: `otpd/${name}`,
      content: name === 'Chart.yaml' ? Buffer.from(withVersion(content.toString(), version)) : content,
    }
  })
  return { name: fileName(version), content: packArchive(files, seconds) }
}

function withVersion(chart: string, version: string): string {
  const changed = chart.replaceAll(/^(version|appVersion): 0\.0\.0$/gm, `$1: ${version}`)
  if (changed.split(`ersion: ${version}\n`).length === 3) return changed
  throw new Error('.packaging/helm/Chart.yaml has no version and appVersion 0.0.0.')
}

/**
 * Makes the folder of releases a repository of Helm, by `index.yaml` (in JSON, which is YAML).
 *
 * @param versions folders of `out`; those from before there was a chart are left out
 */
export function updateChartIndex(root: string, out: string, versions: readonly string[]) {
  const chart = Bun.YAML.parse(readFileSync(join(root, '.packaging/helm/Chart.yaml'), 'utf8'))
  const entries = versions.flatMap((version) => {
    const path = `${version}/${fileName(version)}`
    if (!existsSync(join(out, path))) return []
    const digest = sha256(readFileSync(join(out, path)))
    return [{ ...Object(chart), version, appVersion: version, urls: [path], digest }]
  })
  const index = { apiVersion: 'v1', entries: { otpd: entries } }
  writeFileSync(join(out, 'index.yaml'), `${JSON.stringify(index, null, 2)}\n`)
}

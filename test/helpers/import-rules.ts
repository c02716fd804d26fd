import { importRules } from './import-table.ts'
import type { Import, Source } from './sources.ts'

const areaNames = new Set(importRules.map(({ area }) => area))

/** Names the area of a file: its own row if it has one, its folder otherwise. */
export const findArea = (path: string) =>
  areaNames.has(path) ? path : path.split('/').slice(0, -1).join('/')

const isOurs = (target: string) => /^(src|cli|test)\//.test(target) || target === 'package.json'

function isAllowed(path: string, { target, kind }: Import): boolean {
  const rule = importRules.find(({ area }) => area === findArea(path))
  if (!rule) return false
  if (!isOurs(target)) return rule.packages.test(target)
  const area = findArea(target)
  const isIn = (names: readonly string[] = []) => names.includes(area) || names.includes(target)
  if (area === rule.area || isIn(rule.imports)) return true
  if (area === 'src/shared') return true
  // The rules of the domain, and what is shared with other programs, get time and chance as arguments.
  if (area === 'src/world') return /^src\/(?!domain\/|shared\/|client\/|docs\/)/.test(path)
  if (kind === 'type') return isIn(rule.types) || isIn(rule.dynamic)
  return kind === 'dynamic' && isIn(rule.dynamic)
}

/** Lists the folders and files that the table names as targets. */
export const allowedTargets = () =>
  importRules.flatMap(({ imports = [], types = [], dynamic = [] }) => [...imports, ...types, ...dynamic])

/** Maps each area to the areas that the table lets it import. */
export const allowedGraph = (): Map<string, string[]> =>
  new Map(
    importRules.map(({ area, imports = [], types = [], dynamic = [] }) => [
      area,
      [...imports, ...types, ...dynamic].map((name) => (/\.tsx?$/.test(name) ? findArea(name) : name)),
    ]),
  )

/** Lists the imports that break a rule. */
export const findViolations = (sources: readonly Source[]) =>
  sources.flatMap(({ path, imports }) =>
    imports.filter((one) => !isAllowed(path, one)).map(({ target, kind }) => `${path} → ${target} (${kind})`),
  )

import type { Application } from '../../client/resources.ts'
import type { Choice, Dialog } from '../console-context.ts'

/** Offers the applications to choose from. */
export const appPicker = (
  title: string,
  applications: readonly Application[],
  onPick: (app: Application) => void,
): Dialog => ({
  kind: 'pick',
  title,
  choices: applications.map((app) => ({ ...describe(app), run: () => onPick(app) })),
})

/** Offers the applications to filter by, and all of them together. */
export const appFilterPicker = (
  applications: readonly Application[],
  onPick: (appId: string | null) => void,
): Dialog => ({
  kind: 'pick',
  title: 'Filter by application',
  choices: [
    { kind: '', label: 'All applications', run: () => onPick(null) },
    ...applications.map((app) => ({ ...describe(app), run: () => onPick(app.id) })),
  ],
})

const describe = ({ id, name, environment }: Application): Omit<Choice, 'run'> => ({
  kind: environment === 'live' ? 'LIVE' : 'test',
  label: name,
  detail: id,
})

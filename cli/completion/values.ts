import { apiTokenScopes } from '../../src/shared/api-token-scopes.ts'
import { auditActions } from '../../src/shared/audit-actions.ts'
import { eventKinds, logTypes } from '../../src/shared/event-kinds.ts'

/** Candidates for a value, or each of several that commas join: a closed list, names of resources of a server, or files. */
export type Value = {
  values: readonly string[]
  kind: CompletionKind | null
  isFile: boolean
  isJoined?: boolean
}

/** Values that `otpd __complete` lists: mostly names of resources, for which it asks a server. */
export const completionKinds = [
  'app',
  'project',
  'webhook',
  'token',
  'otp',
  'rule',
  'guide',
  'provider',
  'backup',
  'context',
  'country',
] as const
export type CompletionKind = (typeof completionKinds)[number]

/** Kinds by the name of a value or of its flag. */
const kindsByName: Partial<Record<string, CompletionKind>> = {
  app: 'app',
  '--app': 'app',
  project: 'project',
  '--project': 'project',
  webhook: 'webhook',
  token: 'token',
  'request-id': 'otp',
  'request-id|phone': 'otp',
  '--request': 'otp',
  rule: 'rule',
  guide: 'guide',
  backup: 'backup',
  provider: 'provider',
  context: 'context',
  '--context': 'context',
  '--country': 'country',
  '--default-country': 'country',
  '--countries': 'country',
}

/** Values that may be joined by commas, so that they are no closed list for the parser. */
const wordsByFlag: Partial<Record<string, readonly string[]>> = {
  '--events': [...eventKinds, '*'],
  '--type': logTypes,
  '--scope': apiTokenScopes,
  '--action': auditActions,
}

/** Only what is a file is completed by files: a shell that offers them for the name of an application misleads. */
export const describeValue = (name: string, choices: readonly string[] | undefined, flag = ''): Value => ({
  values: choices ?? wordsByFlag[flag] ?? [],
  kind: kindsByName[flag] ?? kindsByName[name] ?? null,
  isFile: (flag === '' ? /file|backup/ : /file|path|dir|place/).test(name) || flag === '--data',
  isJoined: flag in wordsByFlag || flag === '--countries',
})

import { applicationFields } from '../../../src/shared/application-fields.ts'
import { keysOf, mapProperties, type FieldDefinition, type FieldValues } from '../../../src/shared/fields.ts'
import type { Application, Project } from '../../client/resources.ts'
import { parseSetting } from '../../terminal/setting-text.ts'
import { required, type Console, type Dialog, type Field, type DialogNeeds } from '../console-context.ts'
import { rememberSecrets } from '../app-credentials.ts'
import {
  credentialNames,
  credentialsFromCreation,
  credentialsFromRotation,
  rotations,
  type IssuedCredentialSet,
} from '../issued-credentials.ts'

type CredentialNeeds = DialogNeeds & Pick<Console, 'appCredentials'>

/**
 * Creates an application, and keeps its credentials in memory for test codes.
 *
 * @param projects its project is one of these
 * @param onIssued called with the credentials, which are shown only once
 */
export const newAppDialog = (
  needs: CredentialNeeds,
  projects: readonly Project[],
  onIssued: (issued: IssuedCredentialSet, id: string) => void,
): Dialog => {
  const [first] = projects
  const isNameShared = (name: string) => projects.filter((project) => project.name === name).length > 1
  const label = ({ id, name }: Project) => (isNameShared(name) ? id : name)
  const choices = projects.map(label)
  return {
    kind: 'form',
    title: 'New application',
    lines: [
      `${projects.length === 1 ? `In ${first?.name}. ` : ''}A test application never sends real messages.`,
    ],
    fields: [
      { name: 'name', label: 'name', check: required },
      ...(projects.length > 1 ? [{ name: 'project', label: 'project', choices }] : []),
      { name: 'environment', label: 'environment', choices: ['test', 'live'] },
    ],
    verb: 'create',
    async submit({ name = '', project: projectName, environment: environmentInput }) {
      const environment = environmentInput === 'live' ? ('live' as const) : ('test' as const)
      const project = projects.find((candidate) => label(candidate) === projectName) ?? first
      const body = { name, projectId: project?.id ?? '', environment }
      const { data } = await needs.api.asDeveloper('POST', '/v1/applications', { body })
      const { clientSecret, apiKey } = data
      rememberSecrets(needs, data.clientId, { clientSecret, apiKey })
      needs.toast('application created', 'good')
      onIssued(credentialsFromCreation(data), data.id)
    },
  }
}

/** Edits name and message settings of an application. */
export const editAppDialog = ({ api, toast }: DialogNeeds, app: Application): Dialog => ({
  kind: 'form',
  title: 'Edit application',
  fields: [
    { name: 'name', label: 'name', initial: app.name, check: required },
    ...keysOf(applicationFields).map((name) => settingField(name, applicationFields[name], app[name])),
  ],
  verb: 'save',
  async submit({ name = '', ...values }) {
    const body = { name, ...parseSettings(values) }
    await api.asDeveloper('PATCH', '/v1/applications/:id', { params: { id: app.id }, body })
    toast('application saved', 'good')
  },
})

const settingField = (
  name: string,
  field: FieldDefinition,
  value: FieldValues<typeof applicationFields>[keyof typeof applicationFields],
): Field => {
  const { consoleLabel } = field.terminal
  const initial = String(value ?? '')
  if (field.kind !== 'seconds') return { name, label: consoleLabel, initial }
  const check = (text: string) =>
    parseSetting(field, text) === undefined ? `seconds, ${field.minimum} to ${field.maximum}` : null
  return { name, label: `${consoleLabel}, s`, initial, check }
}

const parseSettings = (values: Readonly<Record<string, string>>) =>
  mapProperties<typeof applicationFields, FieldValues<typeof applicationFields>>(
    applicationFields,
    // The form was checked, so every value can be parsed.
    (field, name) => parseSetting(field, values[name] ?? '') ?? null,
  )

/** Disables an application, or enables it again. */
export const toggleAppDialog = ({ api, toast }: DialogNeeds, { id, name, status }: Application): Dialog => {
  const isActive = status === 'active'
  return {
    kind: 'form',
    title: isActive ? 'Disable application' : 'Enable application',
    lines: [
      name,
      isActive
        ? 'API calls with its credentials are refused until it is enabled again.'
        : 'Its credentials work again.',
    ],
    fields: [],
    verb: isActive ? 'disable' : 'enable',
    async submit() {
      const body = { status: isActive ? ('disabled' as const) : ('active' as const) }
      await api.asDeveloper('PATCH', '/v1/applications/:id', { params: { id }, body })
      toast(isActive ? 'application disabled' : 'application enabled', 'good')
    },
  }
}

/**
 * Deletes an application, after its name is typed.
 *
 * @param onRemoved called after the application was deleted
 */
export const removeAppDialog = (
  { api, toast }: DialogNeeds,
  { id, name, environment }: Application,
  onRemoved: () => void = () => {},
): Dialog => ({
  kind: 'confirm',
  title: `Delete ${environment} application`,
  lines: [
    'Its credentials stop working immediately and its webhooks are deleted. Its OTP requests are kept.',
  ],
  confirmText: name,
  verb: 'delete',
  async submit() {
    await api.asDeveloper('DELETE', '/v1/applications/:id', { params: { id } })
    toast('application deleted', 'good')
    onRemoved()
  },
})

/** Replaces a credential, after the name of the application is typed. */
export const rotateDialog = (
  needs: CredentialNeeds,
  app: Application,
  key: keyof typeof rotations,
  onIssued: (issued: IssuedCredentialSet) => void,
): Dialog => ({
  kind: 'confirm',
  title: `Rotate ${credentialNames[key].name}`,
  lines: [
    key === 'webhookSecret'
      ? 'Deliveries are signed with the new secret immediately. Update your receivers.'
      : 'The current one stops working immediately.',
  ],
  confirmText: app.name,
  verb: 'rotate',
  async submit() {
    const params = { id: app.id, type: rotations[key] }
    const { data } = await needs.api.asDeveloper('POST', '/v1/applications/:id/rotate/:type', { params })
    if (key !== 'webhookSecret') rememberSecrets(needs, app.clientId, { [key]: data.value })
    needs.toast(`${credentialNames[key].name} rotated`, 'good')
    onIssued(credentialsFromRotation(app, key, data))
  },
})

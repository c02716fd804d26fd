import type { AlertNotice } from '../../domain/model/alert.ts'
import type { ProviderHttp } from '../kit/http-client.ts'
import {
  fillDefaults,
  type SettingFields,
  type SettingValues,
  type ProviderKind,
} from '../kit/provider-kinds.ts'

/** Sends a notice. Never rejects. @returns why it was not taken, without secrets; null if it was */
export type SendAlert = (notice: AlertNotice, signal: AbortSignal) => Promise<string | null>

export type AlertNeeds = {
  http: ProviderHttp
  /** URL of the server, which a reader of several installations tells them apart by. */
  server: () => string
}

/** Declares a kind of destination for alerts: its settings and what sends to it. */
export type AlertDestinationKind = Pick<ProviderKind, 'kind' | 'title' | 'fields' | 'together'> & {
  create(values: Readonly<Record<string, string>>, needs: AlertNeeds): SendAlert
}

/** Defines a kind of destination; the settings that `create` gets are typed by `fields`. */
export function defineAlertKind<const Fields extends SettingFields>(
  definition: Omit<AlertDestinationKind, 'fields' | 'create'> & {
    fields: Fields
    create(values: SettingValues<Fields>, needs: AlertNeeds): SendAlert
  },
): AlertDestinationKind {
  return {
    ...definition,
    create: (values, needs) => definition.create(fillDefaults(definition.fields, values), needs),
  }
}

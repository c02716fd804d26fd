import { findApplication } from '../../client/find.ts'
import { describeWideRule, readEnd } from '../../client/guard-rules.ts'
import type { GuardListRule } from '../../client/resources.ts'
import { required, type Console, type Dialog } from '../console-context.ts'

/**
 * Makes a rule that allows or denies, and asks again for one that concerns much. @param value first suggestion, such as the
 * phone of the selected entry
 */
export const addRuleDialog = (
  { api, toast, openDialog }: Pick<Console, 'api' | 'toast' | 'openDialog'>,
  effect: GuardListRule['effect'],
  value: string,
): Dialog => ({
  kind: 'form',
  title: effect === 'allow' ? 'Allow codes' : 'Deny codes',
  lines: ['A phone, first digits like +882 or +1415*, a country, or an IP address or CIDR of end users.'],
  fields: [
    { name: 'value', label: effect, initial: value, check: required },
    { name: 'app', label: 'application (empty: all)', initial: '' },
    { name: 'for', label: 'for (30m, 24h, 7d; empty: always)', initial: effect === 'allow' ? '24h' : '' },
  ],
  verb: effect,
  async submit(values) {
    const value = values['value'] ?? ''
    const app = values['app'] ?? ''
    const time = values['for'] ?? ''
    const appId = app === '' ? undefined : await findApplication(api, app)
    const expiresAt = time === '' ? undefined : readEnd(time, Date.now())
    const body = { effect, value, ...(appId && { appId }), ...(expiresAt && { expiresAt }) }
    const create = async () => {
      const { data } = await api.asDeveloper('POST', '/v1/guard/rules', { body })
      toast(`${data.target} ${effect === 'allow' ? 'allowed' : 'denied'}`, 'good')
    }
    const consequence = describeWideRule(effect, value)
    if (consequence === null) return create()
    openDialog({
      kind: 'confirm',
      title: effect === 'allow' ? 'Allow codes' : 'Deny codes',
      lines: [consequence],
      confirmText: value,
      verb: effect,
      submit: create,
    })
  },
})

/** Offers the rules to remove one of them. */
export const removeRuleDialog = (
  { api, toast, openDialog }: Pick<Console, 'api' | 'toast' | 'openDialog'>,
  rules: readonly GuardListRule[],
  formatPhone: (phone: string) => string,
  applicationName: (appId: string) => string,
): Dialog => ({
  kind: 'pick',
  title: 'Remove a rule',
  choices: rules.map(({ id, effect, target, value, appId }) => {
    const application = appId === null ? '' : `, ${applicationName(appId)}`
    const label = `${effect} ${target === 'phone' ? formatPhone(value) : value}${application}`
    return {
      kind: target,
      label,
      run: () =>
        openDialog({
          kind: 'form',
          title: 'Remove a rule',
          lines: [`Messages are judged at once without this rule: ${label}`],
          fields: [],
          verb: 'remove',
          async submit() {
            await api.asDeveloper('DELETE', '/v1/guard/rules/:id', { params: { id } })
            toast('rule removed', 'good')
          },
        }),
    }
  }),
})

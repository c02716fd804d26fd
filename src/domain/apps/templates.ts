import { recordAudit, selfActor } from '../accounts/audit.ts'
import type { Actor } from '../model/audit.ts'
import type { Clock } from '../model/clock.ts'
import type { Developer } from '../model/developer.ts'
import { invalidRequest, notFound, ServiceError, type ErrorDetail } from '../model/errors.ts'
import type { NewId } from '../model/ids.ts'
import {
  findTemplateFault,
  templateNamePattern,
  templatesMax,
  templateTextsMax,
  variablesOf,
  type MessageTemplate,
  type TemplateText,
  type TextSize,
} from '../model/message-template.ts'
import { canonicalLocale, hasLanguage } from '../model/template-text.ts'
import type { Store } from '../store/store.ts'
import { requireOwnApplication } from './own-application.ts'

export type TemplateService = ReturnType<typeof createTemplateService>

/** Creates the service with which developers write the message texts of their applications. */
export function createTemplateService(needs: {
  store: Store<'applications' | 'audit' | 'developers' | 'templates'>
  clock: Clock
  newId: NewId
  /** Measures the longest message of a text as an SMS. */
  measure(locale: string, text: string): TextSize
}) {
  const { store, clock, newId, measure } = needs

  return {
    measure,

    /** Lists the templates of an application by name. @throws NOT_FOUND for the application */
    async list(developer: Pick<Developer, 'id'>, appId: string): Promise<MessageTemplate[]> {
      await requireOwnApplication(store.read, developer, appId)
      return store.read.templates.list(appId)
    },

    /** @throws NOT_FOUND for the application or the template */
    async get(developer: Pick<Developer, 'id'>, appId: string, name: string): Promise<MessageTemplate> {
      await requireOwnApplication(store.read, developer, appId)
      const template = isName(name) && (await store.read.templates.find(appId, name))
      if (!template) throw notFound('template')
      return template
    },

    /**
     * Creates a template, or replaces all its texts. Requests that were sent keep the text that they have.
     *
     * @throws NOT_FOUND for the application; INVALID_ARGUMENT for a name or texts that cannot be used; CONFLICT
     *   (TEMPLATE_LIMIT_REACHED)
     */
    put(
      developer: Actor,
      appId: string,
      name: string,
      input: Readonly<Record<string, string>>,
    ): Promise<MessageTemplate> {
      const texts = readTexts(input)
      return store.write(async (tx) => {
        // Locks the row that all changes of the developer lock, so that two calls at once do not pass the limit.
        await tx.developers.lock(developer.id)
        const application = await requireOwnApplication(tx, developer, appId)
        requireName(name)
        const templates = await tx.templates.list(appId)
        const before = templates.find((template) => template.name === name)
        if (!before && templates.length >= templatesMax) throw templateLimitReached()
        const now = clock.now()
        const template = { name, texts, createdAt: before?.createdAt ?? now, updatedAt: now }
        await tx.templates.save(appId, template)
        const detail = `template ${name}: ${texts.map(({ locale }) => locale).join(',')}`
        await recordAudit(tx, newId, selfActor(developer), auditOf(application, detail), now)
        return template
      })
    },

    /** Deletes a template. Requests that were sent keep the text that they have. @throws NOT_FOUND */
    delete(developer: Actor, appId: string, name: string): Promise<void> {
      return store.write(async (tx) => {
        await tx.developers.lock(developer.id)
        const application = await requireOwnApplication(tx, developer, appId)
        if (!isName(name) || !(await tx.templates.find(appId, name))) throw notFound('template')
        await tx.templates.delete(appId, name)
        const detail = `template ${name}: deleted`
        await recordAudit(tx, newId, selfActor(developer), auditOf(application, detail), clock.now())
      })
    },
  }
}

const auditOf = ({ id, name }: { id: string; name: string }, detail: string) => ({
  targetId: id,
  targetName: name,
  action: 'application.updated' as const,
  detail,
})

const isName = (name: string) => new RegExp(templateNamePattern).test(name)

/** @throws INVALID_ARGUMENT */
function requireName(name: string): void {
  if (isName(name)) return
  const message =
    'Expected a name of 1 to 32 lower-case letters, digits, hyphens and underscores, such as payment.'
  throw invalidRequest([{ in: 'path', path: 'name', code: 'INVALID', message }])
}

/** Checks the texts of a template, and writes their locales in the canonical form. @throws INVALID_ARGUMENT */
function readTexts(input: Readonly<Record<string, string>>): TemplateText[] {
  const faults: ErrorDetail[] = []
  const addFault = (path: string, message: string) =>
    void faults.push({ in: 'body', path, code: 'INVALID', message })
  const texts: TemplateText[] = []
  for (const [tag, text] of Object.entries(input)) {
    const locale = hasLanguage(tag) ? canonicalLocale(tag) : undefined
    // Errors do not repeat what was sent: a name that is no tag may be a secret.
    const path = locale === undefined ? 'texts' : `texts.${locale}`
    const fault = findTemplateFault(text)
    if (locale === undefined) addFault(path, 'Expected the tag of a language, such as en or pt-BR.')
    else if (texts.some((one) => one.locale === locale))
      addFault(path, `There are two texts for ${locale}. Keep one.`)
    else if (fault) addFault(path, fault.join(' '))
    else texts.push({ locale, text: text.trim() })
  }
  const [first, ...others] = texts.map(({ locale, text }) => ({
    locale,
    variables: variablesOf(text).join(),
  }))
  const different = others.find(({ variables }) => variables !== first?.variables)
  // Else it would depend on the user's language whether a payment is shown.
  if (first && different)
    addFault(
      `texts.${different.locale}`,
      `Use the same variables in all texts: ${first.locale} differs from it.`,
    )
  const count = Object.keys(input).length
  if (count === 0 || count > templateTextsMax)
    addFault('texts', `Expected 1 to ${templateTextsMax} texts by language, such as {"en": "…"}.`)
  if (faults.length > 0) throw invalidRequest(faults)
  return texts
}

const templateLimitReached = () =>
  new ServiceError(
    'CONFLICT',
    `An application can have at most ${templatesMax} templates. Delete one first.`,
    { reason: 'TEMPLATE_LIMIT_REACHED', metadata: { limit: templatesMax } },
  )

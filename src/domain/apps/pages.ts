import { recordAudit, selfActor } from '../accounts/audit.ts'
import type { ApplicationPage } from '../model/application-page.ts'
import type { Actor } from '../model/audit.ts'
import type { Clock } from '../model/clock.ts'
import type { Developer } from '../model/developer.ts'
import { invalidField } from '../model/errors.ts'
import type { NewId } from '../model/ids.ts'
import type { Store } from '../store/store.ts'
import { logoCharactersMax } from '../../shared/logo.ts'
import { isLoopback } from '../../shared/loopback.ts'
import { requireOwnApplication } from './own-application.ts'

/** Fields to change; null clears one. */
type PageChanges = { [K in keyof ApplicationPage]?: ApplicationPage[K] | undefined }

export type PageService = ReturnType<typeof createPageService>

/** Creates the service with which developers set up the ready pages of their applications. */
export function createPageService(needs: {
  store: Store<'applications' | 'audit' | 'developers' | 'pages'>
  clock: Clock
  newId: NewId
}) {
  const { store, clock, newId } = needs

  return {
    /** @throws NOT_FOUND the application does not exist or is another developer's */
    async get(developer: Pick<Developer, 'id'>, id: string): Promise<ApplicationPage> {
      await requireOwnApplication(store.read, developer, id)
      return store.read.pages.find(id)
    },

    /**
     * Changes the fields that are given. A page that is turned off refuses its open sessions at once, and so are those
     * refused whose origin was removed.
     *
     * @throws NOT_FOUND; INVALID_ARGUMENT for an origin or a logo that the page cannot use, and for a page that would be on
     *   without an origin
     */
    update(developer: Actor, id: string, changes: PageChanges): Promise<ApplicationPage> {
      if (changes.logo) requireLogo(changes.logo)
      const returnOrigins = changes.returnOrigins?.map(readOrigin)
      return store.write(async (tx) => {
        // Locks the row that all changes of the application lock, so that two changes do not undo each other.
        await tx.developers.lock(developer.id)
        const { name } = await requireOwnApplication(tx, developer, id)
        const before = await tx.pages.find(id)
        const page: ApplicationPage = {
          enabled: changes.enabled ?? before.enabled,
          name: changes.name === undefined ? before.name : changes.name,
          logo: changes.logo === undefined ? before.logo : changes.logo,
          colour: changes.colour === undefined ? before.colour : (changes.colour?.toLowerCase() ?? null),
          returnOrigins: returnOrigins ? [...new Set(returnOrigins)] : before.returnOrigins,
        }
        if (page.enabled && page.returnOrigins.length === 0)
          throw invalidField(
            'body',
            'returnOrigins',
            'A page that is on needs at least one origin to return to.',
          )
        await tx.pages.save(id, page)
        const detail = `page: ${Object.keys(changes).join(',')}`
        await recordAudit(
          tx,
          newId,
          selfActor(developer),
          { targetId: id, targetName: name, action: 'application.updated', detail },
          clock.now(),
        )
        return page
      })
    },
  }
}

/**
 * Reads an origin as browsers write it, such as `https://shop.example`.
 *
 * @throws INVALID_ARGUMENT for one with a path, a wildcard or another scheme; `http:` is for this machine alone
 */
function readOrigin(text: string, index: number): string {
  const path = `returnOrigins.${index}`
  const url = URL.parse(text)
  // URLs allow signs in names that mean something else in the policy of the page, such as * and ;
  const isOrigin =
    url !== null &&
    url.href === `${url.origin}/` &&
    !/[?#@]/.test(text) &&
    /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])$/.test(url.hostname)
  if (!isOrigin)
    throw invalidField(
      'body',
      path,
      'Expected one origin without path and wildcard, such as https://shop.example.',
    )
  const isSafe = url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname))
  if (!isSafe) throw invalidField('body', path, 'Expected https:// (http:// is for this machine only).')
  return url.origin
}

/** First bytes of images that a page shows. SVG is not among them: it can hold scripts and load other files. */
const imageHeads: Readonly<Record<string, string>> = {
  'image/png': '89504e47',
  'image/jpeg': 'ffd8ff',
  'image/gif': '47494638',
  'image/webp': '52494646',
}

/** @throws INVALID_ARGUMENT for anything but a small image whose bytes are of the type that it names */
function requireLogo(logo: string): void {
  const [, type = '', data = ''] = /^data:([a-z/]+);base64,([A-Za-z0-9+/]+={0,2})$/.exec(logo) ?? []
  const head = imageHeads[type]
  const isImage =
    head !== undefined && Buffer.from(data.slice(0, 16), 'base64').toString('hex').startsWith(head)
  if (logo.length > logoCharactersMax || !isImage)
    throw invalidField(
      'body',
      'logo',
      'Expected a PNG, JPEG, GIF or WebP image as a data URL of at most 32 KiB.',
    )
}

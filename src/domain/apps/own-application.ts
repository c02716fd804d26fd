import type { Application } from '../model/application.ts'
import type { Developer } from '../model/developer.ts'
import { notFound } from '../model/errors.ts'
import { isId } from '../model/ids.ts'
import type { Stores } from '../store/store.ts'

/** Reads an application of a developer. @throws NOT_FOUND the application does not exist or is another developer's */
export async function requireOwnApplication(
  stores: Pick<Stores, 'applications'>,
  developer: Pick<Developer, 'id'>,
  id: string,
): Promise<Application> {
  const application = isId('app', id) ? await stores.applications.find(developer.id, id) : undefined
  if (!application) throw notFound('application')
  return application
}

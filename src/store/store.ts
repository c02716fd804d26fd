import type { Store, Stores } from '../domain/store.ts'
import type { Builders, Database } from './database.ts'
import { createDeveloperStore } from './developers.ts'
import { createIdempotencyStore } from './idempotency.ts'
import { createProjectStore } from './projects.ts'

/** The domain's store on one of the two databases. */
export function createStore(database: Database): Store {
  // SQLite has one writing connection, so that its stores and their prepared statements are made once; PostgreSQL
  // hands out a connection for each transaction.
  const bound = new WeakMap<Builders, Stores>()
  const storesOn = (on: Builders): Stores => {
    let stores = bound.get(on)
    if (!stores) bound.set(on, (stores = bindStores(database, on)))
    return stores
  }
  return {
    read: storesOn(database.read),
    write: (body) => database.write((tx) => body(storesOn(tx))),
  }
}

function bindStores(database: Database, on: Builders): Stores {
  return {
    developers: createDeveloperStore(database, on),
    idempotency: createIdempotencyStore(database, on),
    projects: createProjectStore(database, on),
  }
}

/** What belongs to a notifier is called after it. */
import { OWN_USER_PREFIXES } from '../../kit/delivery.ts'
import type { NotifierTable } from './bodies.ts'

/** Before the names of the users of notifiers. */
export const USER_PREFIX = OWN_USER_PREFIXES.notify
/** After the name of one that a user has put: its user goes with the tenant, as all those do whose names end so. */
export const PUT_ENDING = ':'

/** The name of its user, and of the channel of that. */
export function notifierUser({ name, origin }: Pick<NotifierTable, 'name' | 'origin'>): string {
  return origin === undefined ? USER_PREFIX + name : USER_PREFIX + name + PUT_ENDING
}

/** By which it is known in the store. */
export function notifierPlace({ tenant, name }: Pick<NotifierTable, 'tenant' | 'name'>): string {
  return `${tenant}/${name}`
}

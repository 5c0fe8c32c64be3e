// Channels are below sessions.
import { session } from '../sessions/session.ts'

export interface Queue {
  readonly session: typeof session
}

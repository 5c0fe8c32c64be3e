// What wings are handed declares what it needs instead of importing the server that is made of it.
import type { server } from '../start/server.ts'

export type Kit = typeof server

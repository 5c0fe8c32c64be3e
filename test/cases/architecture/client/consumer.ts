// client/ outside client/dial/ is free of node:, and takes from auth/ only what is so too.
import { connect } from 'node:net'
import { nonce } from '../auth/scram/server.ts'

export const consumer = { connect, nonce }

import { connect } from 'node:net'

export const dial = connect

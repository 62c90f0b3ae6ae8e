import { main } from './suite.mjs';
import { using } from './using.mjs';

const rejections = [];
addEventListener('unhandledrejection', (event) => {
  event.preventDefault();
  rejections.push(String(event.reason?.stack ?? event.reason));
});

export default {
  async fetch(request) {
    return Response.json(await main({ ...(await request.json()), using }, rejections));
  },
};
